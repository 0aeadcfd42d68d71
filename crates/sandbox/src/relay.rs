//! How a listener gets out of a network namespace: made inside, handed to the proxy outside, which answers on it.

use rustix::io::IoSlice;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// The port of the proxy behind the wall: in a network of its own, every port is free.
pub(crate) const PORT: u16 = 3128;

/// Reaches the proxy by its name, from outside the wall.
pub(crate) fn reach(name: &str) -> Result<UnixStream, String> {
    let address = SocketAddr::from_abstract_name(name).map_err(|error| error.to_string())?;
    UnixStream::connect_addr(&address)
        .map_err(|error| format!("the proxy for the listed hosts does not answer: {error}"))
}

/// Listens on the loopback interface of this namespace, and gives the listener away.
pub(crate) fn hand_over(proxy: &UnixStream) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).map_err(|error| format!("port {PORT}: {error}"))?;
    let given = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&given));
    let sent = sendmsg(proxy, &[IoSlice::new(b"L")], &mut ancillary, SendFlags::NOSIGNAL);
    sent.map(drop).map_err(|error| format!("the proxy took no listener: {error}"))
}

/// Takes the listener that was handed over; `Ok(None)`: the other side has ended.
pub(crate) fn take(from: &impl AsFd) -> io::Result<Option<TcpListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let read = recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if read.bytes == 0 {
        return Ok(None);
    }
    let given: Option<OwnedFd> = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut given) => given.next(),
        _ => None,
    });
    given.map(|given| Some(TcpListener::from(given))).ok_or_else(|| io::Error::other("no listener was handed over"))
}
