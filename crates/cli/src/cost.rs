//! `windlass cost`: what model calls took, call by call or added up.

use crate::args::{Bill, By};
use crate::clock;
use crate::desk::{self, Desk};
use crate::exit::{Code, Ended, Failure};
use crate::terminal::{one_line, print, print_json};
use crate::words::{count, duration, grouped};
use serde::Serialize;
use windlass_kernel::{DAY_MS, Dollars, LedgerLine, LedgerSum, SessionId, Spending, Usage};
use windlass_store::{LedgerFilter, LedgerKey, LedgerPlace, SessionFilter, SpentScope, Store};

/// Lines read from the store at a time.
const PAGE: usize = 10_000;
/// Characters of a name in a column.
const NAME_CHARS: usize = 40;

pub async fn show(desk: &Desk, bill: &Bill) -> Ended {
    let since = bill.since.as_deref().map(day).transpose()?;
    let session = match (&bill.session, bill.by) {
        (Some(id), _) => Some(desk::find(&*desk.store, id).await?.session),
        (None, Some(_)) => None,
        (None, None) => Some(newest(desk).await?),
    };
    let of = LedgerFilter { session, from: since, ..LedgerFilter::default() };
    if let Some(by) = bill.by {
        let sums = desk.store.ledger_sums(of, key(by)).await?;
        return if bill.json { as_json(&sums) } else { Ok(told(&sum_table(by, &sums))) };
    }
    let lines = all(&*desk.store, of).await?;
    if bill.json {
        return as_json(&lines);
    }
    let mut text = call_table(&lines);
    if let Some(session) = session {
        text += &tree(&*desk.store, session, &lines).await?;
    }
    Ok(told(&text))
}

/// The newest session of this folder.
async fn newest(desk: &Desk) -> Result<SessionId, Failure> {
    let cwd = desk.environment.cwd.display().to_string();
    let filter = SessionFilter { cwd: Some(cwd.clone()), limit: Some(1) };
    let newest = desk.store.sessions(filter).await?.into_iter().next();
    newest.map(|newest| newest.session).ok_or_else(|| {
        Failure::usage(format!(
            "no session here yet ({cwd}): name one, as in `windlass cost ID` (`windlass sessions --all` lists those of \
             other folders), or add up all of them with `windlass cost --by day`"
        ))
    })
}

fn told(text: &str) -> Code {
    print(text);
    Code::Done
}

fn as_json<T: Serialize>(rows: &[T]) -> Ended {
    let text = serde_json::to_string_pretty(rows)
        .map_err(|error| Failure::new(Code::Failed, format!("the costs can't be written as JSON: {error}")))?;
    print_json(&format!("{text}\n"));
    Ok(Code::Done)
}

fn key(by: By) -> LedgerKey {
    match by {
        By::Day => LedgerKey::Day,
        By::Model => LedgerKey::Model,
        By::Agent => LedgerKey::Agent,
    }
}

/// The first millisecond of a day of UTC.
fn day(text: &str) -> Result<u64, Failure> {
    let date: Result<jiff::civil::Date, _> = text.parse();
    let days = date
        .ok()
        .and_then(|date| u64::try_from(date.duration_since(jiff::civil::date(1970, 1, 1)).as_hours() / 24).ok());
    days.map(|days| days * DAY_MS)
        .ok_or_else(|| Failure::usage(format!("--since {text}: this is no day since 1970; write it as 2026-11-21")))
}

async fn all(store: &dyn Store, of: LedgerFilter) -> Result<Vec<LedgerLine>, Failure> {
    let mut lines: Vec<LedgerLine> = vec![];
    loop {
        let after = lines.last().map(LedgerPlace::of);
        let page = store.ledger(LedgerFilter { after, limit: Some(PAGE), ..of }).await?;
        let is_last = page.len() < PAGE;
        lines.extend(page);
        if is_last {
            return Ok(lines);
        }
    }
}

/// What the whole agent tree has spent, where that is more than the session itself.
async fn tree(store: &dyn Store, session: SessionId, lines: &[LedgerLine]) -> Result<String, Failure> {
    let Spending { micro_usd, tokens } = store.spent(SpentScope::Tree(session)).await?;
    let own: u64 = lines.iter().map(|line| line.spending().tokens).sum();
    if tokens <= own {
        return Ok(String::new());
    }
    Ok(format!("with all agents of its tree: {}, {}\n", Dollars(micro_usd), count(tokens, "token")))
}

fn call_table(lines: &[LedgerLine]) -> String {
    if lines.is_empty() {
        return "no model was called yet\n".into();
    }
    let heads = [
        "time",
        "model",
        "role",
        "try",
        "in",
        "cached",
        "written",
        "out",
        "reasoning",
        "cost",
        "first token",
        "outcome",
    ];
    let mut rows = vec![heads.map(str::to_owned)];
    let mut sum = LedgerSum::default();
    for line in lines {
        sum.add(line);
        let [input, cached, written, output, reasoning] = tokens(&line.usage);
        rows.push([
            clock::second(line.at),
            one_line(&format!("{}/{}", line.provider, line.model), NAME_CHARS),
            line.role.name().into(),
            line.attempt.to_string(),
            input,
            cached,
            written,
            output,
            reasoning,
            cost(line),
            line.first_token_ms.map(duration).unwrap_or_default(),
            line.outcome.name().into(),
        ]);
    }
    let [input, cached, written, output, reasoning] = tokens(&sum.usage);
    let blank = String::new;
    rows.push([
        count(sum.calls, "call"),
        blank(),
        blank(),
        blank(),
        input,
        cached,
        written,
        output,
        reasoning,
        Dollars(sum.cost_micro_usd).to_string(),
        blank(),
        blank(),
    ]);
    format!("{}\n{}\n", table(&rows, |column| (3..=10).contains(&column)), total(&sum))
}

fn sum_table(by: By, sums: &[LedgerSum]) -> String {
    let Some((first, rest)) = sums.split_first() else { return "no model was called in that time\n".into() };
    let name = match by {
        By::Day => "day (UTC)",
        By::Model => "model",
        By::Agent => "agent",
    };
    let heads = [name, "calls", "in", "cached", "written", "out", "reasoning", "cost", "estimated", "unknown price"];
    let row = |sum: &LedgerSum, name: String| {
        let [input, cached, written, output, reasoning] = tokens(&sum.usage);
        let (cost, share) = (Dollars(sum.cost_micro_usd).to_string(), share(sum));
        let (calls, unpriced) = (grouped(sum.calls), if_any(sum.unpriced_calls));
        [name, calls, input, cached, written, output, reasoning, cost, share, unpriced]
    };
    let whole = rest.iter().fold(LedgerSum { key: String::new(), ..first.clone() }, plus);
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(sums.iter().map(|sum| row(sum, one_line(&sum.key, NAME_CHARS))));
    rows.push(row(&whole, "all".into()));
    format!("{}\n{}\n", table(&rows, |column| column > 0), total(&whole))
}

fn plus(mut whole: LedgerSum, one: &LedgerSum) -> LedgerSum {
    whole.calls += one.calls;
    whole.usage.add(&one.usage);
    whole.cost_micro_usd += one.cost_micro_usd;
    whole.unpriced_calls += one.unpriced_calls;
    whole.estimated_calls += one.estimated_calls;
    whole.estimated_micro_usd += one.estimated_micro_usd;
    whole
}

fn tokens(usage: &Usage) -> [String; 5] {
    [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning].map(grouped)
}

/// `~` before what is estimated, `?` for a price that nobody knows (yet); nothing where nothing was taken.
fn cost(line: &LedgerLine) -> String {
    let mark = if line.estimated { "~" } else { "" };
    match line.cost_micro_usd {
        Some(micro) => format!("{mark}{}", Dollars(micro)),
        None if line.unpriced => format!("{mark}?"),
        None => String::new(),
    }
}

fn if_any(number: u64) -> String {
    if number == 0 { String::new() } else { grouped(number) }
}

/// The part of the cost that is estimated, in per cent. Calls that are estimated at no known price are told among those
/// of unknown price, once.
fn share(sum: &LedgerSum) -> String {
    match (sum.estimated_micro_usd, sum.cost_micro_usd) {
        (0, _) | (_, 0) => String::new(),
        (estimated, whole) => format!("{} %", estimated.saturating_mul(100).div_ceil(whole)),
    }
}

/// All of it in a line: an unknown price is never counted as nothing in silence.
fn total(sum: &LedgerSum) -> String {
    let mut text = format!("total {}", Dollars(sum.cost_micro_usd));
    if sum.estimated_micro_usd > 0 {
        text += &format!(", {} of it estimated", Dollars(sum.estimated_micro_usd));
    }
    if sum.unpriced_calls > 0 {
        text += &format!(", plus {} of unknown price", count(sum.unpriced_calls, "call"));
    }
    text
}

/// Columns side by side, the first row their heads; `is_number` says which stand to the right.
fn table<const N: usize>(rows: &[[String; N]], is_number: impl Fn(usize) -> bool) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (text, &width))| match is_number(column) {
            true => format!("{text:>width$}"),
            false => format!("{text:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(key: &str, cost: u64, estimated: u64, unpriced_calls: u64) -> LedgerSum {
        LedgerSum {
            key: key.into(),
            calls: 2,
            usage: Usage { input: 1_000, output: 20, ..Usage::default() },
            cost_micro_usd: cost,
            unpriced_calls,
            estimated_calls: u64::from(estimated > 0),
            estimated_micro_usd: estimated,
        }
    }

    #[test]
    fn sums_stand_in_columns_and_unknown_prices_beside_the_total() {
        let sums = [sum("2026-11-20", 12_300, 0, 0), sum("2026-11-21", 1_000_000, 250_000, 1)];
        insta::assert_snapshot!(sum_table(By::Day, &sums), @"
        day (UTC)   calls     in  cached  written  out  reasoning     cost  estimated  unknown price
        2026-11-20      2  1,000       0        0   20          0  $0.0123
        2026-11-21      2  1,000       0        0   20          0    $1.00       25 %              1
        all             4  2,000       0        0   40          0  $1.0123       25 %              1
        total $1.0123, $0.25 of it estimated, plus 1 call of unknown price
        ");
    }

    #[test]
    fn an_estimated_call_without_a_price_is_told_once_as_unknown() {
        let unknown = LedgerSum { calls: 1, estimated_calls: 1, ..sum("", 0, 0, 1) };
        assert_eq!(total(&unknown), "total $0.00, plus 1 call of unknown price");
        assert_eq!(share(&unknown), "");
    }

    #[test]
    fn a_day_is_one_of_the_calendar() {
        assert_eq!(day("1970-01-02"), Ok(DAY_MS));
        assert_eq!(day("2026-11-21"), Ok(1_795_219_200_000));
        for wrong in ["yesterday", "2026-02-30", "1969-12-31", ""] {
            assert!(day(wrong).unwrap_err().message.contains("write it as 2026-11-21"), "{wrong}");
        }
    }
}
