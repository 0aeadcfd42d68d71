//! Names to addresses: the system's resolver, or answers that were given.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use url::Host;

/// Addresses of one answer that are looked at.
const MAX_ADDRESSES: usize = 64;

/// Looks names up. Answers that were given stand in the place of the system's and are judged like any other.
#[derive(Debug, Default)]
pub struct Resolver {
    /// By name, the answers of the look-ups to come.
    given: Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>,
}

impl Resolver {
    /// The system's resolver but for the names in `overrides`, each written `HOST=ADDRESS,ADDRESS,…`: every further
    /// look-up of the host is answered with the next, the last repeats. `ADDRESS+ADDRESS` is one answer of two.
    pub fn with(overrides: &[String]) -> Result<Resolver, String> {
        let given = overrides.iter().map(|text| answers(text)).collect::<Result<_, _>>()?;
        Ok(Resolver { given: Mutex::new(given) })
    }

    /// The addresses of `name`, in the order they should be tried.
    pub(crate) async fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Some(answer) = self.next_given(name) {
            return Ok(answer);
        }
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).take(MAX_ADDRESSES).collect())
    }

    fn next_given(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = given.get_mut(name)?;
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    }
}

fn answers(text: &str) -> Result<(String, VecDeque<Vec<IpAddr>>), String> {
    let wrong = |why: &str| format!("`{text}`: {why}; write HOST=ADDRESS,… such as pages.test=127.0.0.1,10.0.0.1");
    let (name, list) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    let name = match Host::parse(name.trim()) {
        Ok(Host::Domain(name)) => name.strip_suffix('.').unwrap_or(&name).to_owned(),
        Ok(_) => return Err(wrong("an address is not looked up, only a name is")),
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let address = |text: &str| {
        let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().map_err(|_| wrong(&format!("`{text}` is no address")))
    };
    let answers = list.split(',').map(|answer| answer.split('+').map(address).collect());
    Ok((name, answers.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_look_up_takes_the_next_answer_and_the_last_repeats() {
        let resolver = Resolver::with(&["Pages.test=93.184.216.34,::1+10.0.0.1".to_owned()]).unwrap();
        let mut seen = vec![];
        for _ in 0..3 {
            let answer = resolver.look_up("pages.test").await.unwrap();
            seen.push(answer.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" "));
        }
        assert_eq!(seen, ["93.184.216.34", "::1 10.0.0.1", "::1 10.0.0.1"]);
    }

    #[test]
    fn what_is_no_answer_is_named_with_the_way_out() {
        let wrong = |text: &str| Resolver::with(&[text.to_owned()]).unwrap_err();
        assert!(wrong("pages.test").starts_with("`pages.test`: there is no `=`; write HOST=ADDRESS"));
        assert!(wrong("pages.test=one").contains("`one` is no address"));
        assert!(wrong("127.0.0.1=10.0.0.1").contains("only a name is"));
    }
}
