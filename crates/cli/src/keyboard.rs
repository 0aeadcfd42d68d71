//! What a person types, line by line. Read on a thread of its own: nothing can call a read of a terminal back, and the
//! end of the program must not wait for it.

use std::io::{self, BufRead, Read};
use tokio::sync::mpsc;

/// Lines read ahead.
const LINES: usize = 1;
/// Bytes of one line; what is longer comes as several.
const LINE_BYTES: u64 = 1 << 20;

/// Lines until stdin ends. One that ends with a backslash goes on in the next.
pub fn lines() -> mpsc::Receiver<String> {
    let (tell, told) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = whole_line(&mut stdin) {
            if tell.blocking_send(line).is_err() {
                return;
            }
        }
    });
    told
}

fn whole_line(input: &mut impl BufRead) -> Option<String> {
    let mut whole = String::new();
    loop {
        let mut bytes = vec![];
        let read = input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut bytes).unwrap_or(0);
        if read == 0 {
            return (!whole.is_empty()).then_some(whole);
        }
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end_matches(['\n', '\r']);
        match line.strip_suffix('\\') {
            Some(begun) => {
                whole.push_str(begun);
                whole.push('\n');
            }
            None => {
                whole.push_str(line);
                return Some(whole);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_a_backslash_joins_them() {
        let mut input = io::Cursor::new("one\ntwo \\\nmore\r\n\nlast");
        let lines: Vec<String> = std::iter::from_fn(|| whole_line(&mut input)).collect();
        assert_eq!(lines, ["one", "two \nmore", "", "last"]);
    }
}
