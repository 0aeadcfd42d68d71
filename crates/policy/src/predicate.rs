//! Conditions on a call's arguments, as in `args.amount > 100000`.

use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;

/// `args.PATH OPERATOR LITERAL`, or `args.PATH` alone: that it is there.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    text: String,
    path: Vec<String>,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Compare(Operator, Value),
    In(Vec<Value>),
    Contains(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Whether a rule means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    No,
    /// It cannot be told: enough to be asked or refused, not to be allowed.
    Maybe,
    Sure,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Predicate {
    /// Reads a condition; says what is wrong with it and the way out.
    pub fn parse(text: &str) -> Result<Predicate, String> {
        const FORM: &str = "write `args.NAME OPERATOR VALUE`, as in `args.amount > 100000`, with ==, !=, <, <=, >, >=, in or \
             contains, and the value as JSON";
        let text = text.trim();
        let rest = text.strip_prefix("args.").ok_or_else(|| format!("`{text}` is no condition: {FORM}"))?;
        let end = rest.find(|sign: char| sign.is_whitespace() || "=!<>".contains(sign)).unwrap_or(rest.len());
        let (path, test) = (&rest[..end], rest[end..].trim());
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(format!("`{text}` names no argument: {FORM}"));
        }
        let value = |text: &str| {
            serde_json::from_str::<Value>(text.trim())
                .map_err(|_| format!("`{}` is no JSON value (a text needs \"quotes\"): {FORM}", text.trim()))
        };
        let test = if test.is_empty() {
            Test::Exists
        } else if let Some((sign, operator)) = OPERATORS.iter().find(|(sign, _)| test.starts_with(sign)) {
            Test::Compare(*operator, value(&test[sign.len()..])?)
        } else if let Some(list) = test.strip_prefix("in ") {
            let Value::Array(list) = value(list)? else { return Err(format!("`in` wants a list: {FORM}")) };
            Test::In(list)
        } else if let Some(part) = test.strip_prefix("contains ") {
            Test::Contains(value(part)?)
        } else {
            return Err(format!("`{test}` is no comparison: {FORM}"));
        };
        Ok(Predicate { text: text.into(), path, test })
    }

    /// Whether it holds of `args`. What cannot be compared may hold; what is not there does not.
    pub fn fit(&self, args: &Value) -> Fit {
        let Some(found) = self.find(args) else {
            let differs = matches!(self.test, Test::Compare(Operator::NotEqual, _));
            return if differs { Fit::Sure } else { Fit::No };
        };
        match &self.test {
            Test::Exists => Fit::Sure,
            Test::Compare(operator, wanted) => operator.fit(found, wanted),
            Test::In(list) => best(list.iter().map(|wanted| Operator::Equal.fit(found, wanted))),
            Test::Contains(part) => match (found, part) {
                (Value::String(text), Value::String(part)) => Fit::of(text.contains(&**part)),
                (Value::Array(items), part) => best(items.iter().map(|item| Operator::Equal.fit(item, part))),
                _ => Fit::Maybe,
            },
        }
    }

    fn find<'a>(&self, args: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(args, |value, key| match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            value => value.get(key),
        })
    }
}

impl Operator {
    fn fit(self, found: &Value, wanted: &Value) -> Fit {
        let order = match (found, wanted) {
            (Value::String(found), Value::Number(_)) => match found.trim().parse::<f64>() {
                // Some models put numbers into quotes; some tools take them so.
                Ok(number) => compare(&Value::from(number), wanted),
                Err(_) => None,
            },
            (found, wanted) => compare(found, wanted),
        };
        match (self, order) {
            (Operator::Equal, None) if found.is_string() == wanted.is_string() => Fit::of(found == wanted),
            (Operator::NotEqual, None) if found.is_string() == wanted.is_string() => Fit::of(found != wanted),
            (_, None) => Fit::Maybe,
            (Operator::Equal, Some(order)) => Fit::of(order.is_eq()),
            (Operator::NotEqual, Some(order)) => Fit::of(order.is_ne()),
            (Operator::Less, Some(order)) => Fit::of(order.is_lt()),
            (Operator::LessOrEqual, Some(order)) => Fit::of(order.is_le()),
            (Operator::Greater, Some(order)) => Fit::of(order.is_gt()),
            (Operator::GreaterOrEqual, Some(order)) => Fit::of(order.is_ge()),
        }
    }
}

fn compare(found: &Value, wanted: &Value) -> Option<Ordering> {
    match (found, wanted) {
        (Value::Number(found), Value::Number(wanted)) => match (found.as_i64(), wanted.as_i64()) {
            (Some(found), Some(wanted)) => Some(found.cmp(&wanted)),
            _ => found.as_f64()?.partial_cmp(&wanted.as_f64()?),
        },
        (Value::String(found), Value::String(wanted)) => Some(found.cmp(wanted)),
        (Value::Bool(found), Value::Bool(wanted)) => Some(found.cmp(wanted)),
        _ => None,
    }
}

fn best(fits: impl Iterator<Item = Fit>) -> Fit {
    fits.max().unwrap_or(Fit::No)
}

impl Fit {
    pub(crate) fn of(holds: bool) -> Fit {
        if holds { Fit::Sure } else { Fit::No }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_compare_what_can_be_compared() {
        let args =
            json!({"amount": 250_000, "symbol": "ACME", "legs": [{"side": "sell"}], "said": "250001", "deep": {}});
        for (text, expected) in [
            ("args.amount > 100000", Fit::Sure),
            ("args.amount>=250000.0", Fit::Sure),
            ("args.amount < 100000", Fit::No),
            ("args.said > 250000", Fit::Sure),
            ("args.symbol == \"ACME\"", Fit::Sure),
            ("args.symbol in [\"X\", \"ACME\"]", Fit::Sure),
            ("args.symbol contains \"CM\"", Fit::Sure),
            ("args.symbol > 3", Fit::Maybe),
            ("args.deep > 3", Fit::Maybe),
            ("args.legs.0.side == \"sell\"", Fit::Sure),
            ("args.missing > 3", Fit::No),
            ("args.missing != 3", Fit::Sure),
            ("args.missing", Fit::No),
            ("args.amount", Fit::Sure),
        ] {
            assert_eq!(Predicate::parse(text).unwrap().fit(&args), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_told() {
        for text in ["amount > 3", "args. > 3", "args.x = 3", "args.x == acme", "args.x in 3", "args.x >"] {
            let error = Predicate::parse(text).unwrap_err();
            assert!(error.contains("write `args.NAME OPERATOR VALUE`"), "{text}: {error}");
        }
    }
}
