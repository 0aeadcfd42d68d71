//! What a person is asked about a call.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_kernel::{Question, QuestionKind, QuestionPart, Verdict};
use windlass_policy::Opinion;
use windlass_tools::{Tool, Workspace};

/// The question about a call of `tool`, bound by its hash to exactly this input and folder.
pub(crate) fn put(tool: &dyn Tool, input: &Value, workspace: &Workspace, opinion: &Opinion) -> Question {
    let asked = json!([tool.name(), input, workspace.cwd]);
    let hash = Sha256::digest(asked.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let (kind, preview, impact, options) = match tool.confirmation(input, workspace) {
        Some(it) => (it.kind, it.preview, it.impact, it.options),
        None => (QuestionKind::Approval, format!("{} {input}", tool.name()), String::new(), vec![]),
    };
    let part = |part: &windlass_policy::PartOpinion| QuestionPart {
        part: part.part.clone(),
        allowed: part.verdict == Verdict::Allow,
        reason: part.reason.clone(),
    };
    Question {
        hash,
        kind,
        preview,
        impact,
        rule: opinion.rule.clone(),
        folder: workspace.cwd.display().to_string(),
        reason: opinion.reason.clone(),
        parts: opinion.parts.iter().map(part).collect(),
        proposed: opinion.proposed.iter().map(|proposal| proposal.rule.clone()).collect(),
        covers: opinion.proposed.iter().map(|proposal| proposal.covers.clone()).collect(),
        together: opinion.together,
        every_time: opinion.always_ask && kind == QuestionKind::Approval,
        options,
    }
}
