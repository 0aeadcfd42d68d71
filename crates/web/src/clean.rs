//! HTML written anew for the converter: well nested, shallow, without what nobody reads.
//!
//! A converter walks the tree of a page by recursion, and a parser mends broken nesting by copying elements: a hostile
//! page of a megabyte could overflow the stack, or grow to gigabytes. What leaves here does neither, whatever came in.

use crate::markdown::plain;
use crate::tags::{Piece, attribute, piece, raw_end};
use url::Url;

/// Elements within one another; deeper tags are left out, their text is kept.
const MAX_DEPTH: usize = 40;
/// Of those, lists and quotes, each of which indents every line in it.
const MAX_INDENTS: usize = 10;
/// Bytes of a link.
const MAX_LINK_BYTES: usize = 2048;
/// Bytes that all links together may have beyond those of the page: a short one may be long when written in full.
const LINK_ROOM_BYTES: usize = 64 * 1024;
/// Characters of a title.
const MAX_TITLE_CHARS: usize = 300;

/// A page as it is given to the converter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Clean {
    pub html: String,
    pub title: Option<String>,
}

/// What becomes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Dropped with all that is in it; its content is text, not tags.
    Raw,
    /// Dropped with all that is in it.
    Dropped,
    Title,
    /// Stands alone.
    Void(&'static str),
    /// Begins on a line of its own.
    Block(&'static str),
    Inline(&'static str),
    /// Its tags are dropped, its content is kept.
    Open,
}

fn role(name: &str) -> Role {
    match name {
        "script" | "style" | "iframe" | "noembed" | "noframes" | "noscript" | "textarea" | "xmp" => Role::Raw,
        "nav" | "template" | "svg" | "math" | "object" | "canvas" | "audio" | "video" | "select" | "button"
        | "dialog" => Role::Dropped,
        "title" => Role::Title,
        "br" => Role::Void("br"),
        "hr" => Role::Void("hr"),
        "img" => Role::Void("img"),
        "p" => Role::Block("p"),
        "div" | "section" | "article" | "main" | "header" | "footer" | "aside" | "figure" | "figcaption"
        | "details" | "summary" | "address" | "dl" | "dt" | "dd" | "form" | "fieldset" | "center" | "caption" => {
            Role::Block("div")
        }
        "h1" => Role::Block("h1"),
        "h2" => Role::Block("h2"),
        "h3" => Role::Block("h3"),
        "h4" => Role::Block("h4"),
        "h5" => Role::Block("h5"),
        "h6" => Role::Block("h6"),
        "ul" | "menu" => Role::Block("ul"),
        "ol" => Role::Block("ol"),
        "li" => Role::Block("li"),
        "blockquote" => Role::Block("blockquote"),
        "pre" | "listing" => Role::Block("pre"),
        "table" => Role::Block("table"),
        "tr" => Role::Block("tr"),
        "td" | "th" => Role::Block("td"),
        "a" => Role::Inline("a"),
        "b" | "strong" => Role::Inline("b"),
        "i" | "em" | "cite" | "var" => Role::Inline("i"),
        "code" | "kbd" | "samp" | "tt" => Role::Inline("code"),
        _ => Role::Open,
    }
}

/// Writes `html`, found at `base`, anew.
pub(crate) fn clean(html: &str, base: &Url) -> Clean {
    let out = String::with_capacity(html.len() / 2);
    let link_room = html.len() + LINK_ROOM_BYTES;
    let mut page = Writer { base, out, open: vec![], beyond: 0, title: None, link_room };
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = piece(rest);
        rest = match piece {
            Piece::Text(text) => page.text(text, after),
            Piece::Open { name, attributes } => page.start(&name.to_ascii_lowercase(), attributes, after),
            Piece::Close(name) => page.end(&name.to_ascii_lowercase(), after),
            Piece::Aside => after,
        };
    }
    page.close_down_to(0);
    Clean { html: page.out, title: page.title }
}

struct Writer<'a> {
    base: &'a Url,
    out: String,
    open: Vec<&'static str>,
    /// Tags left out because too many were open, whose ends are yet to come.
    beyond: usize,
    title: Option<String>,
    /// Bytes that links may yet have.
    link_room: usize,
}

impl Writer<'_> {
    fn text<'b>(&mut self, text: &str, after: &'b str) -> &'b str {
        if !text.trim().is_empty() {
            self.enter_cell();
        }
        // Within a table, white space between cells is nothing.
        if !matches!(self.open.last(), Some(&("table" | "tr"))) {
            self.escaped(text);
        }
        after
    }

    fn start<'b>(&mut self, name: &str, attributes: &str, after: &'b str) -> &'b str {
        match role(name) {
            Role::Raw => return past(after, name),
            Role::Dropped if attributes.ends_with('/') => {}
            Role::Dropped => return past_nested(after, name),
            Role::Title => {
                let end = raw_end(after, name);
                self.set_title(&after[..end]);
                return &after[end..];
            }
            Role::Void("img") => self.image(attributes),
            Role::Void(name) => {
                self.enter_cell();
                self.out += &format!("<{name}>");
            }
            Role::Block(name) => self.block(name),
            Role::Inline(name) => self.inline(name, attributes),
            Role::Open => {}
        }
        after
    }

    fn end<'b>(&mut self, name: &str, after: &'b str) -> &'b str {
        let (Role::Block(name) | Role::Inline(name)) = role(name) else { return after };
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(place) = self.last_open(&[name], if name == "table" { &[] } else { &["table"] }) {
            self.close_down_to(place);
        }
        after
    }

    /// A block ends what cannot hold it, as browsers do, so that nothing has to be mended later.
    fn block(&mut self, name: &'static str) {
        let headings = ["h1", "h2", "h3", "h4", "h5", "h6"];
        self.close(&["p"], &["td", "table"]);
        match name {
            "li" => self.close(&["li"], &["ul", "ol", "td", "table"]),
            "tr" => self.close(&["tr"], &["table"]),
            "td" => self.close(&["td"], &["table"]),
            _ if headings.contains(&name) => self.close(&headings, &["td", "table"]),
            _ => {}
        }
        match name {
            "tr" | "td" if !self.open.contains(&"table") => self.push("div"),
            "td" if self.open.last() == Some(&"table") => {
                self.push("tr");
                self.push("td");
            }
            "tr" | "td" => self.push(name),
            _ => {
                self.enter_cell();
                self.push(name);
            }
        }
    }

    fn inline(&mut self, name: &'static str, attributes: &str) {
        self.enter_cell();
        if name == "a" {
            self.close(&["a"], &["td", "table"]);
            return match attribute(attributes, "href").and_then(|href| self.link(href)) {
                Some(href) if self.has_room(name) => {
                    self.open.push(name);
                    self.out += &format!("<a href=\"{href}\">");
                }
                // It goes nowhere; its end tag will find nothing open.
                _ => {}
            };
        }
        // Many of a kind in a row are one.
        let end = format!("</{name}>");
        if self.out.ends_with(&end) && self.has_room(name) {
            self.out.truncate(self.out.len() - end.len());
            self.open.push(name);
        } else {
            self.push(name);
        }
    }

    fn image(&mut self, attributes: &str) {
        let alt = attribute(attributes, "alt").unwrap_or_default().trim();
        let source = attribute(attributes, "src").and_then(|source| self.link(source));
        if let Some(source) = source.filter(|_| !alt.is_empty()) {
            self.enter_cell();
            self.out += &format!("<img src=\"{source}\" alt=\"");
            self.escaped(alt);
            self.out += "\">";
        }
    }

    /// A link in full, to be written within quotes; none if it leads to no page.
    fn link(&mut self, href: &str) -> Option<String> {
        let href = href.trim().replace("&amp;", "&");
        let url = self.base.join(&href).ok().filter(|_| href.len() <= MAX_LINK_BYTES)?;
        let leads = matches!(url.scheme(), "http" | "https" | "mailto");
        self.link_room = self.link_room.checked_sub(url.as_str().len()).filter(|_| leads)?;
        Some(url.as_str().replace('&', "&amp;").replace('"', "%22").replace(['<', '>'], ""))
    }

    /// What stands in a table stands in a cell of it.
    fn enter_cell(&mut self) {
        if self.open.last() == Some(&"table") {
            self.push("tr");
        }
        if self.open.last() == Some(&"tr") {
            self.push("td");
        }
    }

    fn has_room(&self, name: &str) -> bool {
        let indents = |name: &&&str| matches!(**name, "li" | "blockquote");
        let is_indent = indents(&&name);
        // A table takes its row and cell along.
        let more = if matches!(name, "table" | "tr") { 3 } else { 1 };
        self.open.len() + more <= MAX_DEPTH && (!is_indent || self.open.iter().filter(indents).count() < MAX_INDENTS)
    }

    fn push(&mut self, name: &'static str) {
        let fits_table = matches!(name, "tr" | "td");
        if !fits_table && !self.has_room(name) {
            self.beyond += 1;
            self.out.push(' ');
            return;
        }
        self.open.push(name);
        self.out += &format!("<{name}>");
    }

    /// Where the innermost of `names` stands, if none of `walls` stands within it.
    fn last_open(&self, names: &[&str], walls: &[&str]) -> Option<usize> {
        let place = self.open.iter().rposition(|open| names.contains(open) || walls.contains(open))?;
        names.contains(&self.open[place]).then_some(place)
    }

    fn close(&mut self, names: &[&str], walls: &[&str]) {
        if let Some(place) = self.last_open(names, walls) {
            self.close_down_to(place);
        }
    }

    fn close_down_to(&mut self, place: usize) {
        for name in self.open.drain(place..).rev() {
            self.out += &format!("</{name}>");
        }
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '<' => self.out += "&lt;",
                '>' => self.out += "&gt;",
                '"' => self.out += "&quot;",
                '\0' => {}
                c => self.out.push(c),
            }
        }
    }

    /// The first title is the page's.
    fn set_title(&mut self, text: &str) {
        if self.title.is_some() || text.trim().is_empty() {
            return;
        }
        // Its tags are text.
        let short: String = text.trim().chars().take(4 * MAX_TITLE_CHARS).collect();
        self.title = Some(plain(&short.replace('<', "&lt;")).chars().take(MAX_TITLE_CHARS).collect());
    }
}

/// What follows an element whose content is text.
fn past<'a>(rest: &'a str, name: &str) -> &'a str {
    &rest[raw_end(rest, name)..]
}

/// What follows an element that may hold others of its name. One that is never closed ends with the page's body.
fn past_nested<'a>(rest: &'a str, dropped: &str) -> &'a str {
    let (mut rest, mut depth) = (rest, 1);
    while depth > 0 && !rest.is_empty() {
        let (piece, after) = piece(rest);
        match piece {
            Piece::Open { name, .. } if role(&name.to_ascii_lowercase()) == Role::Raw => {
                rest = past(after, name);
                continue;
            }
            Piece::Open { name, attributes } if name.eq_ignore_ascii_case(dropped) && !attributes.ends_with('/') => {
                depth += 1;
            }
            Piece::Close(name) if name.eq_ignore_ascii_case(dropped) => depth -= 1,
            Piece::Close(name) if ["body", "main", "article"].iter().any(|end| name.eq_ignore_ascii_case(end)) => {
                return rest;
            }
            _ => {}
        }
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(html: &str) -> String {
        clean(html, &Url::parse("https://docs.rs/a/b").unwrap()).html
    }

    #[test]
    fn what_nobody_reads_is_left_out() {
        let html = "<head><title> A &amp; B\n</title><style>p {}</style></head><nav><ul><li>Home</nav>\
                    <script>if (a < b) \"</p>\"</script><p onclick=x>Hi<svg><path/></svg> there<!-- no -->";
        let clean = clean(html, &Url::parse("https://docs.rs/").unwrap());
        assert_eq!(clean.html, "<p>Hi there</p>");
        assert_eq!(clean.title.as_deref(), Some("A & B"));
    }

    #[test]
    fn broken_nesting_is_mended_without_copies() {
        assert_eq!(cleaned("<p><b><i>a<p>b</b>"), "<p><b><i>a</i></b></p><p>b</p>");
        assert_eq!(cleaned("<ul><li>a<li>b<ul><li>c</ul></ul>d"), "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>d");
        assert_eq!(
            cleaned("<table>x<tr><th>a<td>b<tr>c</table>"),
            "<table><tr><td>x</td></tr><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"
        );
        assert_eq!(cleaned("<td>a</td></div></b>1 < 2"), "<div>a</div>1 &lt; 2");
        assert_eq!(cleaned("<b>a</b><b>b</b>"), "<b>ab</b>");
        assert_eq!(
            cleaned("<table><tr><td><table><td>in</table>out</table>"),
            "<table><tr><td><table><tr><td>in</td></tr></table>out</td></tr></table>"
        );
    }

    #[test]
    fn links_are_written_in_full_and_lead_to_pages() {
        assert_eq!(cleaned("<a href=c?x=1&amp;y=2>c</a>"), "<a href=\"https://docs.rs/a/c?x=1&amp;y=2\">c</a>");
        assert_eq!(cleaned("<a href='javascript:alert(1)'>c</a>"), "c");
        assert_eq!(
            cleaned("<img src=data:x alt=a><img src=/x.png alt='a \"b\"'>"),
            "<img src=\"https://docs.rs/x.png\" alt=\"a &quot;b&quot;\">"
        );
    }

    fn depth(html: &str) -> usize {
        let (mut depth, mut most) = (0_usize, 0);
        for tag in html.split('<').skip(1) {
            depth = if tag.starts_with('/') { depth - 1 } else { depth + 1 };
            most = most.max(depth);
        }
        most
    }

    #[test]
    fn short_links_do_not_make_a_page_long() {
        let base = Url::parse(&format!("https://docs.rs/{}/", "a".repeat(1500))).unwrap();
        let page = "<a href=x>y</a>".repeat(10_000);
        assert!(clean(&page, &base).html.len() < 4 * page.len());
    }

    #[test]
    fn depth_is_bounded_and_text_is_kept() {
        let deep = format!("{}text{}after", "<div>".repeat(100_000), "</div>".repeat(100_000));
        let html = cleaned(&deep);
        assert_eq!(html.matches("<div>").count(), MAX_DEPTH);
        assert!(html.contains("text") && html.ends_with("</div>after"));
        let quotes = cleaned(&"<blockquote>".repeat(1000));
        assert_eq!(quotes.matches("<blockquote>").count(), MAX_INDENTS);
        assert!(depth(&cleaned(&"<table><tr><td>".repeat(1000))) <= MAX_DEPTH);
        assert!(depth(&cleaned(&"<table><td><div>".repeat(1000))) <= MAX_DEPTH);
    }
}
