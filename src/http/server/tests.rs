//! Tests of the server over its port.

use super::*;
use crate::telemetry::control::Reloaded;
use parking_lot::Mutex;
use std::io::{Read, Write};
use tokio::task::spawn_blocking;

/// Requests a reload; returns the response.
fn reload(to: SocketAddr) -> String {
    let mut stream = std::net::TcpStream::connect(to).expect("it listens");
    let request = b"POST /-/reload HTTP/1.1\r\nhost: localhost\r\nx-requested-by: ann\r\n\
                    connection: close\r\n\r\n";
    stream.write_all(request).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_while_one_is_under_way_is_refused_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (begins, mut begun) = watch::channel(0);
    let (end, ends) = std::sync::mpsc::channel();
    let ends = Mutex::new(ends);
    let published = Arc::new(Published::default());
    published.control.on_reload(move || {
        begins.send_modify(|n| *n += 1);
        let ended = ends.lock().recv();
        ended.expect("the test ends it");
        Reloaded::default()
    });
    let access = AccessOptions::default();
    tokio::spawn(serve(listener, published, access, std::future::pending()));
    let first = spawn_blocking(move || reload(address));
    begun.wait_for(|n| *n == 1).await.expect("it begins");
    let second = spawn_blocking(move || reload(address));
    let second = second.await.expect("no panic");
    assert!(second.starts_with("HTTP/1.1 503 "), "{second}");
    assert!(second.contains("retry-after: 5\r\n"), "{second}");
    assert!(second.contains("a reload is under way"), "{second}");
    for _ in 0..2 {
        end.send(()).expect("it waits");
    }
    let first = first.await.expect("no panic");
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    let third = spawn_blocking(move || reload(address));
    let third = third.await.expect("no panic");
    assert!(third.starts_with("HTTP/1.1 200 "), "{third}");
}
