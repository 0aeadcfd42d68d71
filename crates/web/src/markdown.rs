//! A body as text to read: HTML as Markdown, the rest as it is.

use crate::body::{Body, Fault, Media, decode};
use crate::clean::clean;
use crate::error::Reason;
use crate::fetch::Form;
use crate::tags::{Piece, piece};
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdown};
use url::Url;

/// What a body says.
pub(crate) struct Read {
    pub title: Option<String>,
    pub text: String,
}

/// Reads a body found at `base`. The work is done on a thread that may block, and is in proportion to the bytes.
pub(crate) async fn read(body: Body, media: &Media, base: &Url, form: Form) -> Result<Read, Fault> {
    let (media, base) = (media.clone(), base.clone());
    let done = tokio::task::spawn_blocking(move || {
        let text = decode(&body, &media)?;
        if form == Form::Source || !media.is_html(&text) {
            return Ok(Read { title: None, text });
        }
        let page = clean(&text, &base);
        let text = convert(&page.html).map_err(|why| unreadable(&why))?;
        Ok(Read { title: page.title, text })
    });
    done.await.unwrap_or_else(|_| Err(unreadable("the converter broke down")))
}

/// A line of HTML as words alone.
pub(crate) fn plain(html: &str) -> String {
    let mut words = String::new();
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = piece(rest);
        if let Piece::Text(text) = piece {
            words += text;
        }
        rest = after;
    }
    // What the converter escapes for Markdown is plain here.
    let escaped = words.replace('<', "&lt;").replace('\\', "&#xE000;");
    let text = convert(&escaped).unwrap_or(words).replace('\\', "").replace('\u{e000}', "\\");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn unreadable(why: &str) -> Fault {
    (Reason::Broken, format!("the page can't be turned into Markdown ({why}); ask for it raw"))
}

/// The converter's own tables are padded to their widest cell, so that a small page could become a huge text, and drop
/// the cells at the head of a row: these are written here.
fn convert(html: &str) -> Result<String, String> {
    let converter = HtmlToMarkdown::builder()
        .add_handler(vec!["td"], cell)
        .add_handler(vec!["tr"], row)
        .add_handler(vec!["table"], table)
        .build();
    converter.convert(html).map_err(|error| error.to_string())
}

fn cell(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let content = handlers.walk_children(element.node).content;
    let words: Vec<&str> = content.split_whitespace().collect();
    Some(format!(" {} |", words.join(" ").replace('|', "\\|")).into())
}

fn row(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let cells = handlers.walk_children(element.node).content;
    Some(format!("\n| {}\n", cells.trim()).into())
}

fn table(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let content = handlers.walk_children(element.node).content;
    let rows: Vec<&str> = content.lines().filter(|line| line.starts_with('|')).collect();
    let columns = |row: &str| row.replace("\\|", "").matches('|').count().saturating_sub(1);
    let first = rows.first().map_or(0, |row| columns(row));
    // A table of one column only places things on the screen.
    if rows.iter().all(|row| columns(row) <= 1) {
        let plain: Vec<&str> =
            rows.iter().map(|row| row.trim_matches(['|', ' '])).filter(|row| !row.is_empty()).collect();
        return Some(format!("\n\n{}\n\n", plain.join("\n\n")).into());
    }
    let (head, body) = rows.split_first()?;
    let line = format!("|{}", " --- |".repeat(first));
    Some(format!("\n\n{head}\n{line}\n{}\n\n", body.join("\n")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(html: &str) -> String {
        convert(&clean(html, &Url::parse("https://docs.rs/").unwrap()).html).unwrap()
    }

    #[test]
    fn a_page_reads_as_markdown() {
        let html = "<html><body><nav>menu</nav><h1>Title</h1><p>Some <b>bold</b>, <a href='/x'>a link</a> &amp; \
                    <code>code</code>.</p><ul><li>one<li>two</ul><pre><code>fn main() {\n    1 < 2\n}</code></pre>\
                    <table><thead><tr><th>Name<th>Size</thead><tbody><tr><th>a|b<td>1<tr><td>c<td>2</table>";
        insta::assert_snapshot!(markdown(html), @r"
        # Title

        Some **bold**, [a link](https://docs.rs/x) & `code`.

        *   one
        *   two

        ```
        fn main() {
            1 < 2
        }
        ```

        | Name | Size |
        | --- | --- |
        | a\|b | 1 |
        | c | 2 |
        ");
    }

    #[test]
    fn hostile_pages_stay_small_and_shallow() {
        // On a thread with the stack that blocking work gets.
        let work = || {
            let deep = [
                "<div>",
                "<b>",
                "<blockquote>",
                "<ul><li>",
                "<table><tr><td>",
                "<a href=x><p>",
                "<h1><pre>",
                "<i><td>",
            ];
            for tag in deep {
                let text = markdown(&format!("{}x", tag.repeat(20_000)));
                assert!(text.contains('x') && text.len() < 1_000_000, "{tag}: {} bytes", text.len());
            }
            // Formatting that a parser would copy into every paragraph.
            let copied: String = (0..5_000).map(|n| format!("<b id={n}><i id={n}><code id={n}>")).collect();
            let text = markdown(&format!("<p>{copied}{}", "</p><p>x".repeat(5_000)));
            assert!(text.len() < 100_000, "{} bytes", text.len());
            // A wide cell that others would be padded to.
            let wide = format!("<table><tr><th>{}<th>b{}", "x".repeat(10_000), "<tr><td>1<td>2".repeat(5_000));
            assert!(markdown(&wide).len() < 100_000);
            let attributes: String = (0..50_000).map(|n| format!(" a{n}")).collect();
            assert_eq!(markdown(&format!("<p{attributes}>x")), "x");
            let siblings = markdown(&"<b>x</b><i>y</i>".repeat(50_000));
            assert!(siblings.len() < 1_000_000);
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
    }
}
