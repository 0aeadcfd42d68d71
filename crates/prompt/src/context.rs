//! What the model is told with one prompt, before the person's own words.

use serde_json::Value;

/// The facts of one prompt. The time is always told; what is absent leaves no empty element.
#[derive(Clone, Debug, Default)]
pub struct UserContext<'a> {
    /// ISO 8601 with the offset, as `2026-04-21T10:30:00+08:00`.
    pub current_time: String,
    pub intent: Option<&'a str>,
    pub data: Option<&'a Value>,
    pub constraints: &'a [String],
}

/// The `<userContext>` element. It is always there: a prompt without data still has its time.
pub fn user_context(context: &UserContext) -> String {
    let mut out = format!("<userContext>\n  <currentTime>{}</currentTime>\n", escape(&context.current_time));
    if let Some(intent) = context.intent.map(str::trim).filter(|intent| !intent.is_empty()) {
        out.push_str(&format!("  <userIntent>{}</userIntent>\n", escape(intent)));
    }
    if let Some(data) = context.data {
        out.push_str("  <structuredData>\n");
        push_indented(&mut out, &readable(data));
        out.push_str("  </structuredData>\n");
    }
    if !context.constraints.is_empty() {
        out.push_str("  <constraints>\n");
        for constraint in context.constraints {
            push_indented(&mut out, &format!("- {}", escape(constraint.trim()).replace('\n', "\n  ")));
        }
        out.push_str("  </constraints>\n");
    }
    out.push_str("</userContext>");
    out
}

/// JSON over several lines. `</` can only stand inside a string, where `<\/` means the same: so the data stays
/// JSON, stays readable, and cannot close its element.
fn readable(data: &Value) -> String {
    format!("{data:#}").replace("</", "<\\/")
}

fn push_indented(out: &mut String, text: &str) {
    for line in text.lines() {
        out.push_str("    ");
        out.push_str(line);
        out.push('\n');
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TIME: &str = "2026-04-21T10:30:00+08:00";

    #[test]
    fn s0_17_the_user_context_is_exactly_this() {
        let data = json!({"field1": "value1", "records": [{"id": 1}, {"id": 2}]});
        let constraints = ["at most three rows".to_string(), "sums in euro,\nnot cents".to_string()];
        let context = UserContext {
            current_time: TIME.into(),
            intent: Some("sum up"),
            data: Some(&data),
            constraints: &constraints,
        };
        insta::assert_snapshot!(user_context(&context), @r##"
        <userContext>
          <currentTime>2026-04-21T10:30:00+08:00</currentTime>
          <userIntent>sum up</userIntent>
          <structuredData>
            {
              "field1": "value1",
              "records": [
                {
                  "id": 1
                },
                {
                  "id": 2
                }
              ]
            }
          </structuredData>
          <constraints>
            - at most three rows
            - sums in euro,
              not cents
          </constraints>
        </userContext>
        "##);
    }

    #[test]
    fn s0_17_what_is_absent_leaves_no_element() {
        let context = UserContext { current_time: TIME.into(), intent: Some("  "), ..UserContext::default() };
        insta::assert_snapshot!(user_context(&context), @r##"
        <userContext>
          <currentTime>2026-04-21T10:30:00+08:00</currentTime>
        </userContext>
        "##);
    }

    #[test]
    fn nothing_given_can_close_its_element() {
        let data = json!({"</structuredData>": "a < b && c > d </userContext>"});
        let constraints = ["</constraints>".to_string()];
        let context = UserContext {
            current_time: TIME.into(),
            intent: Some("</userIntent> & more"),
            data: Some(&data),
            constraints: &constraints,
        };
        insta::assert_snapshot!(user_context(&context), @r##"
        <userContext>
          <currentTime>2026-04-21T10:30:00+08:00</currentTime>
          <userIntent>&lt;/userIntent&gt; &amp; more</userIntent>
          <structuredData>
            {
              "<\/structuredData>": "a < b && c > d <\/userContext>"
            }
          </structuredData>
          <constraints>
            - &lt;/constraints&gt;
          </constraints>
        </userContext>
        "##);
    }

    #[test]
    fn the_data_reads_back_as_it_was_given() {
        let data = json!({"html": "</p>", "text": "line\nline \u{1} \"q\" é", "n": [1.5, null, true]});
        let context =
            user_context(&UserContext { current_time: TIME.into(), data: Some(&data), ..UserContext::default() });
        let inner = context.split_once("<structuredData>").unwrap().1.split_once("</structuredData>").unwrap().0;
        assert_eq!(serde_json::from_str::<Value>(inner).unwrap(), data);
    }
}
