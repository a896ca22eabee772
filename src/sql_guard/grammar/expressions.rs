//! Expressions, operators, function calls and windows.

use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DateTimeField, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Interval,
    Subscript, TypedString, UnaryOperator, Value, ValueWithSpan, WindowFrame, WindowFrameBound, WindowSpec,
    WindowType,
};

use super::super::functions;
use super::super::outline::Leaf;
use super::super::refusal::{Code, Refusal};
use super::tables::place;
use super::{Dialect, Reader, clause, refuse, without};

impl Reader<'_> {
    /// The names in several expressions.
    pub(super) fn expressions<'e>(
        &mut self,
        expressions: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Leaf>, Refusal> {
        let mut leaves = Vec::new();
        for expr in expressions {
            leaves.extend(self.expression(expr)?);
        }
        Ok(leaves)
    }

    /// The names in `expr`.
    pub(super) fn expression(&mut self, expr: &Expr) -> Result<Vec<Leaf>, Refusal> {
        // A chain such as `a OR b OR c …` nests to the left, as deep as it is long; only its arms count as nested.
        let mut spine = expr;
        let mut leaves = Vec::new();
        while let Expr::BinaryOp { left, op, right } = spine {
            self.count()?;
            self.operator(op, spine)?;
            leaves.push(right.as_ref());
            spine = left;
        }
        leaves.push(spine);
        let mut names = Vec::new();
        for arm in leaves.into_iter().rev() {
            names.extend(self.nested(|reader| reader.term(arm))?);
        }
        Ok(names)
    }

    fn term(&mut self, expr: &Expr) -> Result<Vec<Leaf>, Refusal> {
        match expr {
            Expr::Identifier(ident) => Ok(vec![Leaf::Column(vec![self.name(ident)?])]),
            Expr::CompoundIdentifier(parts) => {
                let path = parts.iter().map(|part| self.name(part)).collect::<Result<_, _>>()?;
                Ok(vec![Leaf::Column(path)])
            }
            Expr::Value(ValueWithSpan { value, span: _ }) => self.literal(value, expr).map(|()| Vec::new()),
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax }) => {
                without(*uses_odbc_syntax, "ODBC syntax", expr)?;
                self.data_type(data_type, expr)?;
                self.literal(&value.value, expr).map(|()| Vec::new())
            }
            Expr::Subquery(query) => Ok(vec![Leaf::Query(Box::new(self.query(query)?))]),
            Expr::Exists { subquery, negated: _ } => Ok(vec![Leaf::Query(Box::new(self.query(subquery)?))]),
            Expr::InSubquery { expr, subquery, negated: _ } => {
                let mut leaves = self.expression(expr)?;
                leaves.push(Leaf::Query(Box::new(self.query(subquery)?)));
                Ok(leaves)
            }
            Expr::Function(function) => self.function(function, expr),
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                let mut leaves = self.expressions(operand.as_deref())?;
                for CaseWhen { condition, result } in conditions {
                    leaves.extend(self.expressions([condition, result])?);
                }
                leaves.extend(self.expressions(else_result.as_deref())?);
                Ok(leaves)
            }
            Expr::BinaryOp { .. } => self.expression(expr),
            Expr::Interval(interval) => self.interval(interval, expr),
            Expr::UnaryOp { op, expr: operand } => match op {
                UnaryOperator::Plus
                | UnaryOperator::Minus
                | UnaryOperator::Not
                | UnaryOperator::BitwiseNot => self.expression(operand),
                _ => Err(operator(op, expr)),
            },
            _ => self.plain(expr),
        }
    }

    /// Expressions that are made of other expressions only.
    fn plain(&mut self, expr: &Expr) -> Result<Vec<Leaf>, Refusal> {
        match expr {
            Expr::Nested(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => self.expression(inner),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.expressions([left.as_ref(), right])
            }
            Expr::InList { expr, list, negated: _ } => {
                self.expressions(std::iter::once(expr.as_ref()).chain(list))
            }
            Expr::Between { expr, negated: _, low, high } => self.expressions([expr.as_ref(), low, high]),
            Expr::Like { negated: _, any, expr: operand, pattern, escape_char }
            | Expr::ILike { negated: _, any, expr: operand, pattern, escape_char } => {
                without(*any, "LIKE ANY", expr)?;
                let mut leaves = self.expressions([operand.as_ref(), pattern])?;
                leaves.extend(self.expressions(escape_char.as_deref())?);
                Ok(leaves)
            }
            Expr::AnyOp { left, compare_op, right, is_some: _ } | Expr::AllOp { left, compare_op, right } => {
                without(self.dialect != Dialect::Postgres, "ANY or ALL", expr)?;
                self.operator(compare_op, expr)?;
                self.expressions([left.as_ref(), right])
            }
            Expr::Tuple(list) => self.expressions(list),
            Expr::Array(Array { elem, named: _ }) if self.dialect == Dialect::Postgres => {
                self.expressions(elem)
            }
            Expr::CompoundFieldAccess { root, access_chain } if self.dialect == Dialect::Postgres => {
                let mut leaves = self.expression(root)?;
                for access in access_chain {
                    match access {
                        AccessExpr::Subscript(Subscript::Index { index }) => {
                            leaves.extend(self.expression(index)?)
                        }
                        AccessExpr::Subscript(Subscript::Slice { .. }) | AccessExpr::Dot(_) => {
                            return Err(expression("a field of a value", expr));
                        }
                    }
                }
                Ok(leaves)
            }
            _ => self.written_like_functions(expr),
        }
    }

    /// Functions with a syntax of their own.
    fn written_like_functions(&mut self, expr: &Expr) -> Result<Vec<Leaf>, Refusal> {
        match expr {
            Expr::Cast { kind, expr: operand, data_type, format } => {
                without(!matches!(kind, CastKind::Cast | CastKind::DoubleColon), "this cast", expr)?;
                without(format.is_some(), "CAST … FORMAT", expr)?;
                self.data_type(data_type, expr)?;
                self.expression(operand)
            }
            Expr::AtTimeZone { timestamp, time_zone } => self.expressions([timestamp.as_ref(), time_zone]),
            Expr::Extract { field, syntax: _, expr: operand } => {
                without(matches!(field, DateTimeField::Custom(_)), "this field of EXTRACT", expr)?;
                self.expression(operand)
            }
            Expr::Ceil { expr: operand, field } | Expr::Floor { expr: operand, field } => {
                let plain = matches!(field, CeilFloorKind::DateTimeField(DateTimeField::NoDateTime));
                without(!plain, "CEIL or FLOOR to a field", expr)?;
                self.expression(operand)
            }
            Expr::Position { expr, r#in } => self.expressions([expr.as_ref(), r#in]),
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                let mut leaves = self.expression(expr)?;
                leaves.extend(self.expressions(substring_from.as_deref())?);
                leaves.extend(self.expressions(substring_for.as_deref())?);
                Ok(leaves)
            }
            Expr::Trim { trim_where: _, trim_what, expr, trim_characters } => {
                let mut leaves = self.expression(expr)?;
                leaves.extend(self.expressions(trim_what.as_deref())?);
                leaves.extend(self.expressions(trim_characters.iter().flatten())?);
                Ok(leaves)
            }
            Expr::Collate { expr: operand, collation } => {
                let path = self.path(collation)?;
                let known = match (path.as_slice(), self.dialect) {
                    ([name], Dialect::Sqlite) => matches!(name.key.as_str(), "nocase" | "binary" | "rtrim"),
                    ([name], Dialect::Postgres) => matches!(name.key.as_str(), "C" | "POSIX"),
                    _ => false,
                };
                without(!known, "this collation", expr)?;
                self.expression(operand)
            }
            _ => Err(expression(&format!("the expression {expr}"), expr)),
        }
    }

    fn interval(&mut self, interval: &Interval, expr: &Expr) -> Result<Vec<Leaf>, Refusal> {
        let Interval {
            value,
            leading_field,
            leading_precision: _,
            last_field,
            fractional_seconds_precision: _,
        } = interval;
        without(self.dialect != Dialect::Postgres, "INTERVAL", expr)?;
        let custom =
            [leading_field, last_field].iter().any(|field| matches!(field, Some(DateTimeField::Custom(_))));
        without(custom, "this field of INTERVAL", expr)?;
        self.expression(value)
    }

    fn operator(&self, op: &BinaryOperator, expr: &Expr) -> Result<(), Refusal> {
        use BinaryOperator as Op;
        let allowed = match op {
            Op::Plus
            | Op::Minus
            | Op::Multiply
            | Op::Divide
            | Op::Modulo
            | Op::StringConcat
            | Op::Gt
            | Op::Lt
            | Op::GtEq
            | Op::LtEq
            | Op::Eq
            | Op::NotEq
            | Op::And
            | Op::Or
            | Op::BitwiseOr
            | Op::BitwiseAnd
            | Op::PGBitwiseShiftLeft
            | Op::PGBitwiseShiftRight
            | Op::Arrow
            | Op::LongArrow => true,
            Op::Glob => self.dialect == Dialect::Sqlite,
            Op::PGExp
            | Op::PGOverlap
            | Op::PGRegexMatch
            | Op::PGRegexIMatch
            | Op::PGRegexNotMatch
            | Op::PGRegexNotIMatch
            | Op::PGLikeMatch
            | Op::PGILikeMatch
            | Op::PGNotLikeMatch
            | Op::PGNotILikeMatch
            | Op::PGStartsWith
            | Op::HashArrow
            | Op::HashLongArrow
            | Op::AtArrow
            | Op::ArrowAt
            | Op::Question
            | Op::QuestionAnd
            | Op::QuestionPipe
            | Op::Overlaps => self.dialect == Dialect::Postgres,
            _ => false,
        };
        if allowed { Ok(()) } else { Err(operator(op, expr)) }
    }

    fn function(&mut self, function: &Function, expr: &Expr) -> Result<Vec<Leaf>, Refusal> {
        let Function { name, uses_odbc_syntax, parameters, args, within_group, filter, null_treatment, over } =
            function;
        let path = self.path(name)?;
        let key = match path.as_slice() {
            [name] if functions::is_allowed(self.dialect, &name.key) => name.key.clone(),
            _ => {
                let what = format!("the function {name} is not allowed");
                return Err(refuse(
                    Code::Function,
                    what,
                    "use the ordinary functions of numbers, text and dates",
                )
                .at(path.first().and_then(|name| name.at)));
            }
        };
        without(*uses_odbc_syntax, "ODBC syntax", expr)?;
        without(!matches!(parameters, FunctionArguments::None), "parameters of a function", expr)?;
        without(null_treatment.is_some(), "IGNORE NULLS or RESPECT NULLS", expr)?;
        let mut leaves = match args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::Subquery(_) => {
                return Err(clause("a query as the arguments of a function", expr));
            }
            FunctionArguments::List(list) => self.arguments(&key, list, expr)?,
        };
        leaves.extend(self.sorted(within_group)?);
        leaves.extend(self.expressions(filter.as_deref())?);
        match over {
            None => {}
            Some(WindowType::NamedWindow(name)) => drop(self.name(name)?),
            Some(WindowType::WindowSpec(window)) => leaves.extend(self.window(window)?),
        }
        Ok(leaves)
    }

    fn arguments(
        &mut self,
        function: &str,
        list: &FunctionArgumentList,
        expr: &Expr,
    ) -> Result<Vec<Leaf>, Refusal> {
        let FunctionArgumentList { duplicate_treatment: _, args, clauses } = list;
        let mut leaves = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            let FunctionArg::Unnamed(arg) = arg else {
                return Err(clause("a named argument", expr));
            };
            match arg {
                FunctionArgExpr::Expr(value) => {
                    self.bounded(function, index, value)?;
                    leaves.extend(self.expression(value)?);
                }
                FunctionArgExpr::Wildcard if function == "count" && args.len() == 1 => {}
                FunctionArgExpr::Wildcard
                | FunctionArgExpr::QualifiedWildcard(_)
                | FunctionArgExpr::WildcardWithOptions(_) => {
                    return Err(clause("* as an argument", expr));
                }
            }
        }
        for part in clauses {
            match part {
                FunctionArgumentClause::OrderBy(order_by) => leaves.extend(self.sorted(order_by)?),
                _ => return Err(clause("this clause of a function", expr)),
            }
        }
        Ok(leaves)
    }

    /// Refuses arguments that make a long text from a short statement.
    fn bounded(&self, function: &str, index: usize, value: &Expr) -> Result<(), Refusal> {
        let literal = match value {
            Expr::Value(literal) => Some(&literal.value),
            _ => None,
        };
        let fine = if functions::width_argument(self.dialect, function) == Some(index) {
            matches!(literal, Some(Value::Number(n, false)) if n.parse().is_ok_and(|n: u64| n <= functions::MAX_WIDTH))
        } else if index == 0 && functions::takes_format(function) {
            matches!(literal, Some(Value::SingleQuotedString(format)) if functions::is_bounded_format(format))
        } else {
            true
        };
        if fine {
            return Ok(());
        }
        let what = format!("the width in {function} is not a number up to {}", functions::MAX_WIDTH);
        Err(refuse(Code::Argument, what, "write widths and formats as literals").at(place(value)))
    }

    pub(super) fn window(&mut self, window: &WindowSpec) -> Result<Vec<Leaf>, Refusal> {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = window;
        if let Some(name) = window_name {
            self.name(name)?;
        }
        let mut leaves = self.expressions(partition_by)?;
        leaves.extend(self.sorted(order_by)?);
        if let Some(WindowFrame { units: _, start_bound, end_bound }) = window_frame {
            for bound in std::iter::once(start_bound).chain(end_bound) {
                match bound {
                    WindowFrameBound::CurrentRow => {}
                    WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) => {
                        leaves.extend(self.expressions(rows.as_deref())?);
                    }
                }
            }
        }
        Ok(leaves)
    }
}

fn operator(op: impl std::fmt::Display, expr: &Expr) -> Refusal {
    let what = format!("the operator {op} is not allowed");
    refuse(Code::Operator, what, "use the ordinary operators of this database").at(place(expr))
}

fn expression(what: &str, expr: &Expr) -> Refusal {
    refuse(Code::Expression, format!("{what} is not allowed"), "write the query without it").at(place(expr))
}
