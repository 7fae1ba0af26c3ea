use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process;

/// Three addresses on the loopback interface that nobody listens on.
///
/// The ports are below those that the kernel gives to outgoing connections, so no client takes
/// one before it is listened on. The search begins at a port that depends on the process, so two
/// demos that start together do not try the same ports.
pub(super) fn free() -> io::Result<[SocketAddr; 3]> {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 10_000;
    let start = u16::try_from(process::id() * 7 % u32::from(COUNT)).unwrap_or_default();
    let ports = (0..COUNT).map(|nth| FIRST + (start + nth) % COUNT);
    let found: Vec<SocketAddr> = ports.map(local).filter(is_free).take(3).collect();
    <[SocketAddr; 3]>::try_from(found)
        .map_err(|_| io::Error::new(io::ErrorKind::AddrInUse, "no free ports on 127.0.0.1"))
}

/// The loopback addresses with these ports; another free port replaces one that is taken.
pub(super) fn free_or_other(ports: [u16; 3]) -> io::Result<[SocketAddr; 3]> {
    let wanted = ports.map(local);
    if wanted.iter().all(is_free) {
        return Ok(wanted);
    }
    let others = free()?;
    let pairs = [0, 1, 2].map(|nth| (wanted[nth], others[nth]));
    Ok(pairs.map(|(wanted, other)| if is_free(&wanted) { wanted } else { other }))
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn is_free(address: &SocketAddr) -> bool {
    TcpListener::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_port_that_is_taken_is_replaced() {
        let [taken, free_port, other] = free().unwrap().map(|address| address.port());
        let _listening = TcpListener::bind(local(taken)).unwrap();
        let found = free_or_other([taken, free_port, other]).unwrap();
        assert_ne!(found[0].port(), taken);
        assert!(is_free(&found[0]));
        assert_eq!(found[1..], [local(free_port), local(other)]);
    }
}
