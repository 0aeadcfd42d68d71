//! Telling followers, and keeping what late ones need: the blocks that are not whole yet.

use crate::report::Piece;
use crate::{DeltaFrame, DeltaKind, Frame};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;
use windlass_kernel::{ContentBlock, Event, Seq, SessionId};
use windlass_tools::{SecretStream, Secrets, Source};

/// Frames a follower may lag behind before it is let go and has to ask again.
const FRAMES_AHEAD: usize = 256;

pub(crate) struct Feed {
    session: SessionId,
    secrets: Arc<Secrets>,
    /// A queue each, so that a frame is kept no longer than until the last of them has read it.
    followers: Vec<mpsc::Sender<Frame>>,
    open: BTreeMap<(Seq, u32), OpenBlock>,
}

struct OpenBlock {
    kind: DeltaKind,
    text: String,
    told: usize,
    /// Holds back what may become a secret.
    stream: SecretStream,
}

impl OpenBlock {
    fn new(kind: DeltaKind) -> OpenBlock {
        OpenBlock { kind, text: String::new(), told: 0, stream: SecretStream::default() }
    }

    fn tell(&mut self, session: SessionId, work: Seq, index: u32, text: String) -> Option<Frame> {
        let offset = self.told;
        self.told += text.len();
        // A tool's progress is for the eye only, and its result comes whole.
        if self.kind != DeltaKind::Progress {
            self.text.push_str(&text);
        }
        let frame = || Frame::Delta(Arc::new(DeltaFrame { session, work, index, offset, delta: self.kind, text }));
        (offset < self.told).then(frame)
    }

    fn rest(&mut self, secrets: &Secrets) -> String {
        self.stream.finish_text(secrets, source_of(self.kind))
    }
}

fn source_of(kind: DeltaKind) -> Source {
    if kind == DeltaKind::Progress { Source::Output } else { Source::Speech }
}

impl Feed {
    pub fn new(session: SessionId, secrets: Arc<Secrets>) -> Feed {
        Feed { session, secrets, followers: vec![], open: BTreeMap::new() }
    }

    /// Takes a piece in; what comes back is told once what stands before it is stored. None: it may be the beginning
    /// of a secret, and waits for the next.
    pub fn hear(&mut self, piece: Piece) -> Option<Frame> {
        let Piece { work, index, kind, text } = piece;
        let open = self.open.entry((work, index)).or_insert_with(|| OpenBlock::new(kind));
        let text = open.stream.push_text(&self.secrets, text, source_of(kind));
        open.tell(self.session, work, index, text)
    }

    /// Forgets what `event` makes whole; what was still held back of it is told.
    pub fn settle(&mut self, event: &Event) -> Option<Frame> {
        match event {
            Event::BlockFinished { work, index, .. } => {
                let mut open = self.open.remove(&(*work, *index))?;
                let rest = open.rest(&self.secrets);
                return open.tell(self.session, *work, *index, rest);
            }
            Event::ModelFinished { work, .. }
            | Event::ModelFailed { work, .. }
            | Event::ModelCancelled { work, .. } => self.open.retain(|(of, _), _| of != work),
            Event::ToolFinished(finished) => self.open.retain(|(of, _), _| *of != finished.work),
            _ => {}
        }
        None
    }

    /// The text blocks of `work` that broke off: what was told is a fact even if the rest never comes.
    pub fn broken_off(&self, work: Seq) -> Vec<Event> {
        let of_work = self.open.range((work, 0)..=(work, u32::MAX));
        let texts = of_work.filter(|(_, open)| open.kind == DeltaKind::Text);
        let broken = texts.filter_map(|((work, index), open)| {
            let text = open.text.clone() + &open.stream.clone().finish_text(&self.secrets, Source::Speech);
            let block = ContentBlock::text(&text);
            (!text.is_empty()).then_some(Event::BlockFinished { work: *work, index: *index, block, partial: true })
        });
        broken.collect()
    }

    /// The same of every work.
    pub fn all_broken_off(&self) -> Vec<(Seq, Event)> {
        let works: BTreeSet<Seq> = self.open.keys().map(|(work, _)| *work).collect();
        works.into_iter().flat_map(|work| self.broken_off(work).into_iter().map(move |event| (work, event))).collect()
    }

    /// Tells every follower; one whose queue is full is let go, and finds what it missed in the store.
    pub fn tell(&mut self, frames: Vec<Frame>) {
        if self.followers.is_empty() {
            return;
        }
        for frame in frames {
            self.followers.retain(|follower| follower.try_send(frame.clone()).is_ok());
        }
    }

    /// A new follower: everything told from now on, and the open blocks as told so far.
    pub fn follow(&mut self) -> (Vec<Frame>, mpsc::Receiver<Frame>) {
        let open = self.open.iter().filter(|(_, open)| !open.text.is_empty());
        let frames = open.map(|((work, index), open)| {
            let (session, work, index, text) = (self.session, *work, *index, open.text.clone());
            Frame::Delta(Arc::new(DeltaFrame { session, work, index, offset: 0, delta: open.kind, text }))
        });
        let frames = frames.collect();
        let (to, live) = mpsc::channel(FRAMES_AHEAD);
        self.followers.push(to);
        (frames, live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_tools::Wish;

    const KEY: &str = "Xy7-provider-key-0042";

    fn feed() -> Feed {
        let values = vec![("MODEL_KEY".into(), KEY.into())];
        let session = SessionId(uuid::Uuid::nil());
        Feed::new(session, Arc::new(Secrets::new(Wish { values, ..Wish::default() })))
    }

    /// The texts told for `pieces`, each with its offset.
    fn told(feed: &mut Feed, kind: DeltaKind, pieces: &[&str]) -> Vec<(usize, String)> {
        let heard = pieces
            .iter()
            .filter_map(|text| feed.hear(Piece { work: Seq(1), index: 0, kind, text: (*text).to_owned() }));
        heard.map(as_told).collect()
    }

    fn as_told(frame: Frame) -> (usize, String) {
        let Frame::Delta(delta) = frame else { panic!("{frame:?}") };
        (delta.offset, delta.text.clone())
    }

    fn finished() -> Event {
        Event::BlockFinished { work: Seq(1), index: 0, block: ContentBlock::text(""), partial: false }
    }

    #[test]
    fn a_key_split_over_deltas_is_told_as_a_mark_and_offsets_count_what_was_told() {
        let mut feed = feed();
        let heard = told(&mut feed, DeltaKind::Text, &["it is ", &KEY[..5], &KEY[5..], ", you see"]);
        let mark = "[redacted: MODEL_KEY]";
        assert_eq!(heard, [(0, "it is ".into()), (6, mark.into()), (6 + mark.len(), ", you see".into())]);
        let (late, _) = feed.follow();
        let late: Vec<_> = late.into_iter().map(as_told).collect();
        assert_eq!(late, [(0, format!("it is {mark}, you see"))]);
    }

    #[test]
    fn what_was_held_back_and_turns_out_harmless_is_told_with_the_blocks_end() {
        let mut feed = feed();
        assert_eq!(told(&mut feed, DeltaKind::Text, &["ends in X", "y"]), [(0, "ends in ".into())]);
        assert_eq!(feed.settle(&finished()).map(as_told), Some((8, "Xy".into())));
        assert!(feed.settle(&finished()).is_none());
    }

    #[test]
    fn a_text_that_breaks_off_in_a_key_is_kept_without_its_beginning() {
        let mut feed = feed();
        told(&mut feed, DeltaKind::Text, &["it is ", &KEY[..15]]);
        let Event::BlockFinished { block, partial: true, .. } = &feed.broken_off(Seq(1))[0] else { panic!() };
        assert_eq!(*block, ContentBlock::text("it is [redacted: MODEL_KEY]"));
    }

    #[test]
    fn progress_of_a_tool_tells_nothing_that_looks_like_a_secret_and_a_models_words_are_its_own() {
        let token = "ghp_aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cF1234";
        let (first, second) = token.split_at(20);
        let heard = told(&mut feed(), DeltaKind::Progress, &[first, second, " ok"]);
        assert_eq!(heard, [(0, "[redacted: github token] ok".into())]);
        assert_eq!(told(&mut feed(), DeltaKind::Input, &[token]), [(0, token.into())]);
    }
}
