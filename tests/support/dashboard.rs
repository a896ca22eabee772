//! A stored Grafana dashboard.

use std::path::Path;

use serde_json::Value;

/// A file of this repository.
pub fn shipped(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A parsed dashboard.
pub struct Dashboard(pub Value);

/// A query of a panel.
#[derive(Debug)]
pub struct Target {
    pub row: String,
    pub panel: String,
    pub description: String,
    pub legend: String,
    pub expr: String,
}

impl Target {
    /// The expression as Grafana sends it for all servers.
    pub fn expr(&self, interval: &str, range: &str) -> String {
        let expr = self.expr.replace("$__rate_interval", interval).replace("$__range", range);
        let expr = expr.replace("$instance", ".*");
        assert!(!expr.contains('$'), "an undefined variable: {self:?}");
        expr
    }
}

impl Dashboard {
    /// `dashboards/proscenium.json`.
    pub fn shipped() -> Self {
        Self(serde_json::from_str(&shipped("dashboards/proscenium.json")).unwrap())
    }

    /// Rows and panels in their order.
    pub fn panels(&self) -> &[Value] {
        self.0["panels"].as_array().unwrap()
    }

    /// The titles of the rows.
    pub fn rows(&self) -> Vec<&str> {
        let rows = self.panels().iter().filter(|panel| panel["type"] == "row");
        rows.map(|row| row["title"].as_str().unwrap()).collect()
    }

    /// Every query of every panel.
    pub fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        let mut row = String::new();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        for panel in self.panels() {
            if panel["type"] == "row" {
                row = text(&panel["title"]);
                continue;
            }
            for target in panel["targets"].as_array().unwrap() {
                let legend = text(&target["legendFormat"]);
                let (row, expr, description) =
                    (row.clone(), text(&target["expr"]), text(&panel["description"]));
                targets.push(Target { row, panel: text(&panel["title"]), description, legend, expr });
            }
        }
        targets
    }
}
