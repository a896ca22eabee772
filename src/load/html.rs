//! The report as one HTML page that needs nothing else: its plots are inline SVG.

use minijinja::{AutoEscape, Environment, Value, context};
use plotters::prelude::{
    ChartBuilder, Color, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor, SVGBackend,
    SeriesLabelPosition, WHITE,
};

use super::LoadFault;
use super::compare::LoadComparison;
use super::measure::MeasureUnit;
use super::report::LoadReport;
use super::summary::{LoadSummary, shown_percentiles};
use super::timeline::ReportedInterval;

/// Pixels of a plot.
const SIZE: (u32, u32) = (860, 260);
/// The colours of the series of a plot, in order.
const COLOURS: [RGBColor; 4] =
    [RGBColor(31, 119, 180), RGBColor(214, 39, 40), RGBColor(255, 127, 14), RGBColor(127, 127, 127)];

/// A line of a plot.
struct PlotSeries {
    name: &'static str,
    points: Vec<(f64, f64)>,
}

/// A plot of lines over a common axis.
struct LoadPlot {
    title: &'static str,
    x: &'static str,
    y: &'static str,
    series: Vec<PlotSeries>,
}

/// The page.
///
/// # Errors
/// `load.html` if it cannot be made.
pub fn page(report: &LoadReport, comparison: Option<&LoadComparison>) -> Result<String, LoadFault> {
    let fault = |why: String| LoadFault::new("load.html", format!("the HTML report cannot be made: {why}"));
    let mut plots = Vec::new();
    for plot in plots_of(report) {
        let svg = plot.svg().map_err(fault)?;
        plots.push(context! { title => plot.title, svg => Value::from_safe_string(svg) });
    }
    let summary = LoadSummary::of(report);
    let durations: Vec<(&str, [String; 7])> =
        summary.durations.iter().map(|(label, of)| (*label, shown_percentiles(of))).collect();
    let compared: Vec<[String; 4]> = comparison.map_or_else(Vec::new, |comparison| {
        let shown = |unit: MeasureUnit, value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| unit.show(value))
        };
        let row = |row: &super::compare::ComparedMeasure| {
            [row.name.clone(), shown(row.unit, row.earlier), shown(row.unit, row.now), row.change()]
        };
        comparison.rows.iter().map(row).collect()
    });
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let page = environment.render_str(
        include_str!("report.html"),
        context! {
            head => summary.head, figures => summary.figures, durations, plots, compared,
            began => format!("{:.0}", report.began), thresholds => report.thresholds,
            settings => report.settings, keys => report.keys,
            differences => comparison.map(|comparison| comparison.settings.clone()),
        },
    );
    page.map_err(|error| fault(error.to_string()))
}

/// The plots that have something to show.
fn plots_of(report: &LoadReport) -> Vec<LoadPlot> {
    type Figure = fn(&ReportedInterval) -> Option<f64>;
    let over_time = |title, y, lines: &[(&'static str, Figure)]| {
        let series = lines.iter().map(|(name, figure)| PlotSeries {
            name,
            points: report.timeline.iter().filter_map(|at| Some((at.until_s, figure(at)?))).collect(),
        });
        LoadPlot { title, x: "seconds", y, series: series.collect() }
    };
    let curve = PlotSeries { name: "latency", points: report.latency_curve.clone() };
    let plots = [
        over_time(
            "Requests",
            "a second",
            &[
                ("answered", |at| Some(at.answered_per_s)),
                ("failed", |at| Some(at.errors_per_s)),
                ("shed", |at| Some(at.shed_per_s)),
                ("not sent", |at| Some(at.not_sent_per_s)),
            ],
        ),
        over_time("Latency", "ms", &[("p50", |at| at.p50_ms), ("longest", |at| at.max_ms)]),
        LoadPlot {
            title: "Latency by percentile",
            x: "nines: 1 is p90, 2 is p99, 3 is p99.9",
            y: "ms",
            series: vec![curve],
        },
        over_time("In flight", "requests", &[("in flight", |at| Some(at.in_flight as f64))]),
        over_time(
            "Memory of the server",
            "MB",
            &[("resident", |at| at.memory_bytes.map(|bytes| bytes / 1e6))],
        ),
    ];
    plots.into_iter().filter(|plot| plot.series.iter().any(|series| series.points.len() > 1)).collect()
}

impl LoadPlot {
    fn svg(&self) -> Result<String, String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| error.to_string())?;
        Ok(svg)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let max = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max).max(f64::EPSILON);
        let (x_max, y_max) = (max(|point| point.0), max(|point| point.1) * 1.1);
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let font = ("sans-serif", 12).into_font();
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..x_max, 0.0..y_max)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(self.x)
            .y_desc(self.y)
            .y_labels(6)
            .label_style(font.clone())
            .axis_desc_style(font.clone())
            .draw()?;
        for (series, colour) in self.series.iter().zip(COLOURS) {
            chart
                .draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)))?
                .label(series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
        }
        if self.series.len() > 1 {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.8))
                .label_font(font)
                .draw()?;
        }
        drop(chart);
        area.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::example;
    use super::*;

    #[test]
    fn page_has_everything_in_it_and_escapes_what_it_was_given() {
        let mut report = example();
        report.settings.mix = "<script>".to_owned();
        let comparison = LoadComparison::of(&report, &report);
        let page = page(&report, Some(&comparison)).unwrap();
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
        // Nothing is loaded from elsewhere: the only addresses are the server's and that of SVG's name.
        let addresses = page.replace("http://www.w3.org/2000/svg", "").replace("http://127.0.0.1:8080", "");
        assert!(!addresses.contains("://") && !page.contains("src="), "{addresses}");
        assert_eq!(page.matches("<polyline").count().min(4), 4, "each plot has lines");
        let mut rest = page.as_str();
        let mut without_plots = String::new();
        while let Some((before, after)) = rest.split_once("<svg") {
            without_plots.push_str(before);
            without_plots.push_str("(plot)");
            rest = after.split_once("</svg>").unwrap().1;
        }
        without_plots.push_str(rest);
        let body = without_plots.split_once("<body>").unwrap().1;
        insta::assert_snapshot!(body);
    }
}
