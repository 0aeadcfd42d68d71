//! A record as one line of a story.

use windlass_kernel::*;

pub fn line(record: &Record) -> String {
    let cause = record.cause.map_or(String::new(), |cause| format!("←{cause}"));
    format!("{:>5} {cause:<6} {}", record.seq, event(&record.event))
}

fn event(event: &Event) -> String {
    match event {
        Event::Opened { profile, .. } => format!("opened         {}", profile.name),
        Event::Reopened { .. } => "REOPENED".into(),
        Event::Configured(change) => format!("configured     {:?} {:?}", change.model, change.caps),
        Event::ToolsChanged { change, tools } => format!("tools changed  {change:?} {tools:?}"),
        Event::Prompted(prompt) => format!("PROMPTED       {}", text_of(&prompt.blocks)),
        Event::Noted { text, wakes, .. } => format!("noted          {text}{}", if *wakes { ", wakes" } else { "" }),
        Event::Cleared { .. } => "cleared".into(),
        Event::CompactionAsked { .. } => "compaction asked".into(),
        Event::Interrupted { .. } => "INTERRUPTED".into(),
        Event::DeadlinePassed => "DEADLINE".into(),
        Event::Began { step } => format!("began          {}", self::step(step)),
        Event::ModelCalled(called) => format!("model called   {}", called.model),
        Event::CacheBroke(broke) => format!("cache BROKE    {:?} of {} tokens", broke.cause, broke.tokens),
        Event::SpendingSeen { scope, spent } => format!("spending seen  {scope:?} {spent:?}"),
        Event::BlockFinished { block, partial, .. } => format!("block{} {}", tilde(*partial), self::block(block)),
        Event::ModelFinished { stop, .. } => format!("model finished {stop:?}"),
        Event::ModelFailed { error, .. } => format!("model FAILED   {:?} {:?}", error.kind, error.retry_after_ms),
        Event::ModelCancelled { .. } => "model cancelled".into(),
        Event::Judged(judged) => {
            let plan = &judged.plan;
            format!("judged         {} {:?}, {:?}, {:?}", judged.call, judged.verdict, plan.access, plan.on_crash)
        }
        Event::HookRan(ran) => format!("hook ran       {} {:?}", ran.hook, ran.outcome),
        Event::Asked { call, question } => format!("asked          {call} {:?}", question.kind),
        Event::Answered(answer) => format!("answered       {} {:?}", answer.call, answer.decision),
        Event::ToolStarted(started) => format!("tool started   {}", started.call),
        Event::ToolFinished(done) => {
            format!("tool finished  {} {:?} {:?}", done.call, done.outcome, text_of(&done.blocks))
        }
        Event::Compacted { upto, .. } => format!("compacted      up to {upto}"),
        Event::CompactionFailed { .. } => "compaction failed".into(),
        Event::StopBlocked { repair, .. } => format!("stop blocked{}", if *repair { ", to be repaired" } else { "" }),
        Event::TurnFinished { end, .. } => format!("TURN FINISHED  {end:?}"),
    }
}

fn tilde(partial: bool) -> &'static str {
    if partial { "~        " } else { "         " }
}

fn step(step: &Step) -> String {
    match step {
        Step::CallModel => "call model".into(),
        Step::Judge { call } => format!("judge {call}"),
        Step::RunTool { call } => format!("RUN {call}"),
        Step::Close { calls, why } => {
            let calls: Vec<_> = calls.iter().map(|call| call.0.as_str()).collect();
            format!("close {}: {why:?}", calls.join(" "))
        }
        Step::Cancel { work } => format!("cancel {work}"),
        Step::Compact => "compact".into(),
        Step::Snip { calls } => {
            let calls: Vec<_> = calls.iter().map(|call| call.0.as_str()).collect();
            format!("SNIP {}", calls.join(" "))
        }
        Step::SwitchModel { model, why } => format!("SWITCH to {model} ({why:?})"),
        Step::Pause { cap } => format!("PAUSE {cap:?}"),
        Step::Finish { end, checks } => format!("finish {end:?}{}", if *checks { ", checks" } else { "" }),
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text } => format!("text {text:?}"),
        ContentBlock::Thinking { thinking, .. } => format!("thinking {thinking:?}"),
        ContentBlock::ToolUse(tool_use) => format!("use {} {}", tool_use.id, tool_use.name),
        _ => "other".into(),
    }
}
