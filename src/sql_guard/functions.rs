//! The functions that a statement may call. What is not here is refused: functions that read files or settings, write,
//! sleep, take locks, look into the catalogue, or make values of any size from small arguments.

use super::Dialect;

const AGGREGATES_AND_WINDOWS: &[&str] = &[
    "avg", "count", "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "max", "min",
    "nth_value", "ntile", "percent_rank", "rank", "row_number", "string_agg", "sum",
];

const COMMON: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "ceil", "ceiling", "coalesce", "concat", "concat_ws", "cos",
    "current_date", "current_time", "current_timestamp", "degrees", "exp", "floor", "format", "length", "ln",
    "log", "lower", "ltrim", "mod", "nullif", "octet_length", "pi", "power", "radians", "random", "replace",
    "round", "rtrim", "sign", "sin", "sqrt", "substr", "substring", "tan", "trim", "trunc", "upper",
];

const SQLITE: &[&str] = &[
    "char", "date", "datetime", "glob", "group_concat", "hex", "ifnull", "iif", "instr", "json",
    "json_array", "json_array_length", "json_extract", "json_group_array", "json_group_object",
    "json_object", "json_type", "json_valid", "julianday", "like", "log10", "log2", "pow", "printf", "quote",
    "strftime", "time", "timediff", "total", "typeof", "unhex", "unicode", "unixepoch",
];

const POSTGRES: &[&str] = &[
    "age",
    "array_agg",
    "array_length",
    "array_position",
    "array_to_string",
    "ascii",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "btrim",
    "cardinality",
    "cbrt",
    "char_length",
    "character_length",
    "chr",
    "corr",
    "covar_pop",
    "covar_samp",
    "date_bin",
    "date_part",
    "date_trunc",
    "div",
    "every",
    "extract",
    "gcd",
    "greatest",
    "initcap",
    "isfinite",
    "json_agg",
    "json_array_length",
    "json_build_array",
    "json_build_object",
    "json_extract_path",
    "json_extract_path_text",
    "json_object_agg",
    "json_typeof",
    "jsonb_agg",
    "jsonb_array_length",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "jsonb_object_agg",
    "jsonb_typeof",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "lcm",
    "least",
    "left",
    "localtime",
    "localtimestamp",
    "log10",
    "lpad",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "md5",
    "mode",
    "now",
    "num_nonnulls",
    "num_nulls",
    "percentile_cont",
    "percentile_disc",
    "position",
    "regexp_count",
    "regexp_match",
    "regexp_replace",
    "regexp_substr",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "reverse",
    "right",
    "rpad",
    "split_part",
    "starts_with",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_to_array",
    "strpos",
    "to_char",
    "to_date",
    "to_json",
    "to_jsonb",
    "to_number",
    "to_timestamp",
    "translate",
    "var_pop",
    "var_samp",
    "variance",
    "width_bucket",
];

/// Returns whether an expression may call `name` (lower case).
#[must_use]
pub fn is_allowed(dialect: Dialect, name: &str) -> bool {
    let own = match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
    };
    [AGGREGATES_AND_WINDOWS, COMMON, own].iter().any(|list| list.contains(&name))
}

/// The columns of the table function `name` (lower case), if a statement may use it in `FROM`. A PostgreSQL function
/// that returns one column names it after itself or its alias: such a function has the empty list.
#[must_use]
pub fn table_function(dialect: Dialect, name: &str) -> Option<&'static [&'static str]> {
    match (dialect, name) {
        (Dialect::Sqlite, "json_each" | "json_tree") => {
            Some(&["key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"])
        }
        (Dialect::Postgres, "json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text") => {
            Some(&["key", "value"])
        }
        (Dialect::Postgres, "json_array_elements" | "jsonb_array_elements") => Some(&["value"]),
        (Dialect::Postgres, "json_array_elements_text" | "jsonb_array_elements_text") => Some(&["value"]),
        (
            Dialect::Postgres,
            "generate_series"
            | "unnest"
            | "string_to_table"
            | "regexp_split_to_table"
            | "json_object_keys"
            | "jsonb_object_keys",
        ) => Some(&[]),
        _ => None,
    }
}

/// Maximum number of characters that one call of a padding or formatting function may ask for.
pub const MAX_WIDTH: u64 = 1_000;

/// Where the width is in the arguments of a padding function.
pub(super) fn width_argument(dialect: Dialect, name: &str) -> Option<usize> {
    matches!((dialect, name), (Dialect::Postgres, "lpad" | "rpad")).then_some(1)
}

/// Returns whether the first argument of `name` is a format, which can ask for any width.
pub(super) fn takes_format(name: &str) -> bool {
    matches!(name, "format" | "printf")
}

/// Returns whether `format` asks for widths and precisions up to [`MAX_WIDTH`] only, none of them from an argument.
pub(super) fn is_bounded_format(format: &str) -> bool {
    let runs = format.split(|character: char| !character.is_ascii_digit());
    !format.contains('*')
        && runs.filter(|run| !run.is_empty()).all(|run| run.parse().is_ok_and(|n: u64| n <= MAX_WIDTH))
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn functions_with_side_effects_or_any_size_are_on_no_list() {
        for dialect in Dialect::iter() {
            for name in [
                "load_extension", "writefile", "readfile", "edit", "randomblob", "zeroblob", "pg_sleep",
                "set_config", "current_setting", "lo_import", "lo_export", "pg_read_file", "dblink",
                "query_to_xml", "repeat", "pg_advisory_lock", "nextval", "setval", "pg_terminate_backend",
                "sqlite_version", "version", "to_regclass", "has_table_privilege", "current_user",
                "txid_current", "xmlparse", "pg_ls_dir", "fts3_tokenizer",
            ] {
                assert!(
                    !is_allowed(dialect, name) && table_function(dialect, name).is_none(),
                    "{dialect} {name}"
                );
            }
        }
    }

    #[test]
    fn formats_with_wide_or_given_widths_are_unbounded() {
        assert!(is_bounded_format("%d of %5.2f %s"));
        for bad in ["%*d", "%1001d", "%.99999999999999999999f", "%1$*2$s"] {
            assert!(!is_bounded_format(bad), "{bad}");
        }
    }
}
