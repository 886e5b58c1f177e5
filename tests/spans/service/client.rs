//! Load for the service.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

#[allow(dead_code, reason = "for the test")]
const CONNECTIONS: u64 = 4;

/// Sends requests over one connection, each after the response to the one before.
pub(crate) fn send(address: SocketAddr, requests: u64) -> io::Result<()> {
    let mut to = TcpStream::connect(address)?;
    to.set_nodelay(true)?;
    let mut from = BufReader::new(to.try_clone()?);
    for number in 0..requests {
        write!(to, "GET /square/{number} HTTP/1.1\r\nHost: test\r\n\r\n")?;
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            from.read_line(&mut line)?;
            if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = given.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        assert_eq!(body, (number * number).to_string().as_bytes());
    }
    Ok(())
}

/// Sends requests over connections that stay open.
#[allow(dead_code, reason = "for the test")]
pub(crate) fn send_all(address: SocketAddr, requests: u64) {
    let senders: Vec<_> = (0..CONNECTIONS)
        .map(|_| thread::spawn(move || send(address, requests / CONNECTIONS)))
        .collect();
    for sender in senders {
        sender
            .join()
            .expect("it does not panic")
            .expect("the service answers");
    }
}
