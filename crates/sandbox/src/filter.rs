//! The system calls that are refused behind every wall: those that reach around it, and no compiler needs.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Made<T> = Result<T, seccompiler::Error>;

/// Which sockets may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Those of this machine and of the network: namespaces keep what they reach.
    Usual,
    /// Those of the network only: by a path in the file system nothing can be kept from being reached.
    Network,
    /// None; pairs of connected ones can be had all the same.
    None,
}

/// Refused with "not permitted".
const REFUSED: [i64; 40] = [
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces, with which the wall could be taken down.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Files by handle go around every path.
    libc::SYS_open_by_handle_at,
    // The kernel itself, its keys, and wide doors into it.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// Said to be unknown, so that programs take the older way: a filter cannot see what they are given.
const UNKNOWN: [i64; 4] =
    [libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

const NEW_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Puts the filter on this process and all it starts. It must not gain rights any more.
pub(crate) fn apply(sockets: Sockets) -> Result<(), String> {
    let filters = filters(sockets).map_err(|error| format!("the system calls' filter could not be made: {error}"))?;
    for filter in filters {
        apply_filter(&filter).map_err(|error| format!("the system calls' filter could not be put on: {error}"))?;
    }
    Ok(())
}

fn filters(sockets: Sockets) -> Made<[BpfProgram; 2]> {
    let mut refused: Rules = REFUSED.iter().map(|call| (*call, vec![])).collect();
    refused.insert(libc::SYS_clone, namespaces()?);
    refused.insert(libc::SYS_socket, families(sockets)?);
    // Typing on the terminal in the user's name. With other C libraries these numbers are of another type.
    #[allow(clippy::unnecessary_cast)]
    let typing = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| is(1, request as u64));
    refused.insert(libc::SYS_ioctl, typing.into_iter().collect::<Made<_>>()?);
    let unknown = UNKNOWN.iter().map(|call| (*call, vec![])).collect();
    let mut refused = program(refused, libc::EPERM)?;
    close_second_numbering(&mut refused);
    Ok([refused, program(unknown, libc::ENOSYS)?])
}

fn program(rules: Rules, errno: i32) -> Made<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().map_err(seccompiler::Error::Backend)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(seccompiler::Error::Backend)?;
    filter.try_into().map_err(seccompiler::Error::Backend)
}

fn rule(conditions: Vec<SeccompCondition>) -> Made<SeccompRule> {
    SeccompRule::new(conditions).map_err(seccompiler::Error::Backend)
}

fn condition(argument: u8, compare: SeccompCmpOp, value: u64) -> Made<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value).map_err(seccompiler::Error::Backend)
}

fn is(argument: u8, value: u64) -> Made<SeccompRule> {
    rule(vec![condition(argument, SeccompCmpOp::Eq, value)?])
}

/// A new process with a namespace of its own, whichever.
fn namespaces() -> Made<Vec<SeccompRule>> {
    let bits = (0..32).map(|bit| 1_u64 << bit).filter(|bit| NEW_NAMESPACES & bit != 0);
    bits.map(|bit| rule(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])).collect()
}

/// Refuses all families but those allowed: the others (of virtual machines, packets, ciphers) pass by namespaces or are
/// doors into the kernel.
fn families(sockets: Sockets) -> Made<Vec<SeccompRule>> {
    let allowed: &[i32] = match sockets {
        Sockets::Usual => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::Network => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::None => return Ok(vec![]),
    };
    let others = allowed.iter().map(|family| condition(0, SeccompCmpOp::Ne, family.unsigned_abs().into()));
    Ok(vec![rule(others.collect::<Made<_>>()?)?])
}

/// On x86-64 every system call has a second number, with bit 30 set, that a list of numbers does not see.
#[cfg(target_arch = "x86_64")]
fn close_second_numbering(filter: &mut BpfProgram) {
    const LOAD_NUMBER: sock_filter = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    const BELOW_BIT_30: sock_filter = sock_filter { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 };
    const UNKNOWN_CALL: sock_filter = sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::ENOSYS as u32 };
    filter.splice(0..0, [LOAD_NUMBER, BELOW_BIT_30, UNKNOWN_CALL]);
}

#[cfg(not(target_arch = "x86_64"))]
fn close_second_numbering(_filter: &mut [sock_filter]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_can_be_made_for_every_choice_of_sockets() {
        for sockets in [Sockets::Usual, Sockets::Network, Sockets::None] {
            let [refused, unknown] = filters(sockets).unwrap();
            assert!(refused.len() > REFUSED.len() && unknown.len() > UNKNOWN.len());
        }
    }
}
