//! An answer that must satisfy a schema: checked, mended once, and otherwise a clear failure.

mod common;

use common::*;
use serde_json::json;
use windlass::Prompt;
use windlass::kernel::*;

async fn run(answers: [&str; 2]) -> (windlass::Answer, Workshop) {
    let [first, second] = answers;
    let script = format!("[[step]]\nblocks = [{{ text = '{first}' }}]\n[[step]]\nblocks = [{{ text = '{second}' }}]");
    let workshop = Workshop::playing(&script);
    let agent = workshop.agent().build().unwrap();
    let session = agent.open().await.unwrap();
    let schema = json!({"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}});
    let answer = soon(session.run(Prompt::new("which port?").output_schema(schema))).await.unwrap();
    checked(&agent, &session).await;
    (answer, workshop)
}

#[tokio::test]
async fn an_answer_that_fits_is_taken_as_it_is() {
    let (answer, workshop) = run([r#"{"port": 80}"#, "never asked for"]).await;
    assert_eq!((answer.end, answer.text.as_str()), (End::Done, r#"{"port": 80}"#));
    assert_eq!(workshop.bodies().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_mended_once() {
    let (answer, workshop) = run([r#"{"port": "eighty"}"#, r#"{"port": 80}"#]).await;
    assert_eq!((answer.end, answer.text.as_str()), (End::Done, r#"{"port": 80}"#));
    let told = workshop.newest().to_string();
    assert!(told.contains("does not satisfy the JSON Schema"), "{told}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_again_is_a_clear_failure() {
    let (answer, workshop) = run(["eighty", r#"{"hafen": 80}"#]).await;
    let End::InvalidAnswer { problem } = answer.end else { panic!("{:?}", answer.end) };
    assert!(problem.contains("port"), "{problem}");
    assert_eq!(workshop.bodies().len(), 2);
}
