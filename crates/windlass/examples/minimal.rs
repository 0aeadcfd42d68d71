//! An agent with one tool of its own, against any server that speaks Chat Completions:
//!
//!     cargo run -p windlass --example minimal -- http://127.0.0.1:11434/v1 qwen3 "Roll three dice."

use windlass::kernel::{Access, CallPlan, ContentBlock, OnCrash, PermissionMode};
use windlass::tools::{Tool, ToolOutput, ToolRun, Workspace};
use windlass::{Agent, Protocol, Provider, Providers};

struct Dice;

#[windlass::async_trait]
impl Tool for Dice {
    fn name(&self) -> &str {
        "roll_dice"
    }

    fn description(&self) -> &str {
        "Rolls dice with six sides and gives what they show."
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "object",
            "properties": { "count": { "type": "integer", "minimum": 1, "maximum": 100 } },
            "required": ["count"],
        })
    }

    fn plan(&self, _: &serde_json::Value, _: &Workspace) -> CallPlan {
        CallPlan { access: Access::Read, on_crash: OnCrash::Repeat, ..CallPlan::default() }
    }

    async fn call(&self, input: serde_json::Value, run: &ToolRun) -> ToolOutput {
        let mut seed = run.idempotency_key.bytes().fold(7u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        let mut roll = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % 6 + 1
        };
        let rolled: Vec<_> = (0..input["count"].as_u64().unwrap_or(1)).map(|_| roll()).collect();
        ToolOutput { blocks: vec![ContentBlock::text(format!("{rolled:?}"))], ..ToolOutput::default() }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the server's address, for example http://127.0.0.1:11434/v1")?;
    let model = arguments.next().unwrap_or("qwen3".into());
    let prompt = arguments.next().unwrap_or("Roll three dice.".into());
    let mut providers = Providers::default();
    providers.set("here", Provider::at(Protocol::Chat, url));
    let agent = Agent::builder().cwd(std::env::current_dir()?).providers(providers).model(format!("here/{model}"));
    let answer = agent.tool(Dice).mode(PermissionMode::Default).build()?.run(prompt)?;
    println!("{}\n({} model calls, {} tool runs)", answer.text, answer.tally.model_calls, answer.tally.tool_runs);
    Ok(())
}
