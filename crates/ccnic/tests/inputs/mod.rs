//! What the fuzz targets do with an input; the corpus goes through the same in the tests.

use std::cell::RefCell;

use ccnic::handshake::{self, Request};
use ccnic::mem::Mem;
use ccnic::{Buf, Config, Error, Features, HostPort, HostQueue, Layout, NicQueue, Offload, Signal};

/// Any bytes as a message to a NIC, and as its answer.
pub fn handshake(bytes: &[u8]) {
    if let Ok(Some(n)) = handshake::expected(bytes) {
        assert!(n <= handshake::LONGEST);
    }
    if let Ok(Request::Hello(hello)) = handshake::request(bytes) {
        let again = handshake::request(&hello.to_bytes()).expect("what is written can be read");
        assert_eq!(again, Request::Hello(hello.clone()));
        hello.config.check().expect("only what is valid is let in");
        assert!(hello.rss.queue(bytes, hello.config.served()).0 < hello.config.served());
    }
    if let Ok(features) = handshake::read_answer(bytes, Features::CHECKSUM) {
        assert!(Features::CHECKSUM.has(features));
    }
    if let Some((head, frame)) = bytes.split_first_chunk::<{ Offload::BYTES }>() {
        if let Ok(offload) = Offload::parse(head, frame.len()) {
            assert_eq!(&offload.to_bytes(), head);
            offload.complete(&mut frame.to_vec());
        }
    }
}

/// A port that lives from input to input; every input ends with a reset.
struct Bench {
    port: HostPort,
    queues: Vec<HostQueue>,
}

fn configs() -> Vec<Config> {
    let small = Config {
        queues: 2,
        slots: 16,
        buffers: 64,
        large_bytes: 1024,
        stack: 8,
        bulk: 4,
        objects: 2,
        object_bytes: 64,
        offload: 2,
        ..Config::default()
    };
    vec![
        small.clone(),
        Config { signal: Signal::Register, ..small.clone() },
        Config { layout: Layout::Packed, recycle: false, ..small.clone() },
        Config { layout: Layout::Padded, signal: Signal::Register, mtu: 200, ..small.clone() },
        Config { shared_pool: false, ..small.clone() },
        Config { shared_pool: false, signal: Signal::Register, layout: Layout::Packed, ..small.clone() },
        Config { headroom: 128, payload: 512, small: false, queues: 1, poll_us: 1, ..small },
    ]
}

thread_local! {
    static BENCHES: RefCell<Vec<Bench>> = RefCell::new(configs().into_iter().map(|config| {
        let mut port = HostPort::create_private(config.clone()).expect("valid");
        let queues = (0..config.queues).map(|q| port.queue(q).expect("fresh")).collect();
        Bench { port, queues }
    }).collect());
}

/// Host and NIC take turns while the input's words go to the region; then a reset, after which
/// every buffer is back and, as every fourth input is asked, packets flow.
pub fn region(input: &[u8]) {
    let Some((&first, mut rest)) = input.split_first() else {
        return;
    };
    BENCHES.with_borrow_mut(|benches| {
        let pick = first as usize % benches.len();
        let Bench { port, queues } = &mut benches[pick];
        let words = port.region().len() / 8;
        let region = port.region().clone();
        let mut nic = port.local_nic().expect("the last one was dropped");
        let mut nics: Vec<NicQueue> = (0..queues.len() as u32).map(|q| nic.queue(q).expect("fresh")).collect();
        let mut kept = Vec::new();
        while let Some((&op, tail)) = rest.split_first() {
            rest = tail;
            let q = (op >> 3) as usize % queues.len();
            match op & 7 {
                0 => host(&mut queues[q], op >> 4, &mut kept),
                1 => {
                    let _ = nics[q].loopback(16);
                }
                2 => poll_and_post(&mut nics[q], op >> 4),
                _ => {
                    let Some((bytes, tail)) = rest.split_first_chunk::<4>() else {
                        break;
                    };
                    rest = tail;
                    let at = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
                    let low = u64::from(u16::from_le_bytes([bytes[2], bytes[3]]));
                    // Control words are the first; most inputs should hit them.
                    let word = if op & 0x80 == 0 { at % words.min(2048) } else { at % words };
                    let value = match op & 7 {
                        3 => low,
                        4 => 1 << 63 | low >> 9 << 16 | low & 0x1ff,
                        5 => region.get(word) ^ 1 << (low & 63),
                        6 => region.get(low as usize % words.min(2048)),
                        _ => u64::MAX - low,
                    };
                    region.put(word, value);
                }
            }
        }
        for q in queues.iter_mut() {
            q.free(&mut kept);
        }
        drop((nics, nic));
        recover(port, queues);
        if first & 0xc0 != 0 {
            return;
        }
        let mut nic = port.local_nic().expect("the last one was dropped");
        for (q, host) in queues.iter_mut().enumerate() {
            let mut far = nic.queue(q as u32).expect("fresh");
            host.rx(&mut Vec::new(), 1).expect("clean after the reset");
            let (mut bufs, mut got) = (Vec::new(), 0);
            assert_eq!(host.alloc(&mut bufs, 1, 64), 1);
            host.write(&mut bufs[0], &[9; 64]);
            assert_eq!(host.tx(&mut bufs).expect("clean after the reset"), 1);
            far.loopback(4).expect("clean after the reset");
            got += host.rx(&mut bufs, 4).expect("clean after the reset");
            assert_eq!((got, bufs[0].len()), (1, 64));
            host.free(&mut bufs);
        }
        drop(nic);
        recover(port, queues);
    });
}

fn recover(port: &mut HostPort, queues: &mut [HostQueue]) {
    port.recover(&mut queues.iter_mut().collect::<Vec<_>>()).expect("no NIC to wait for");
    let audit = port.audit(&queues.iter().collect::<Vec<_>>());
    assert_eq!((audit.user, audit.stacked, audit.pooled), (0, 0, audit.total));
}

fn host(queue: &mut HostQueue, how: u8, kept: &mut Vec<Buf>) {
    let mut bufs = Vec::new();
    queue.alloc(&mut bufs, 1 + how as usize % 5, if how & 1 == 0 { 64 } else { 700 });
    for b in &mut bufs {
        queue.write(b, &[how; 40]);
    }
    if how & 2 != 0 && bufs.len() > 1 {
        bufs[0].set_more(true);
    }
    if how & 4 != 0 && kept.len() < 4 && !bufs.is_empty() {
        kept.extend(queue.retain(&bufs[0]));
    }
    if how & 8 != 0 && bufs.len() == 1 {
        let offload = Offload { flags: 1, csum_start: 14, csum_offset: 6, ..Offload::default() };
        queue.write_offload(&mut bufs[0], &offload, &[how; 40]);
    }
    only_faults(queue.tx(&mut bufs));
    queue.free(&mut bufs);
    only_faults(queue.rx(&mut bufs, 1 + how as usize));
    for b in &bufs {
        queue.checksum(b);
        queue.offload(b, b.len());
    }
    queue.free(&mut bufs);
    only_faults(queue.sweep());
}

fn poll_and_post(queue: &mut NicQueue, how: u8) {
    let mut bufs = Vec::new();
    let _ = queue.tx_poll(&mut bufs, 8);
    assert!(bufs.last().is_none_or(|b| !b.more()), "whole packets only");
    queue.tx_done();
    queue.free(&mut bufs);
    if let Ok(Some(mut packet)) = queue.alloc_packet(1 + 97 * how as usize) {
        queue.write_packet(&packet, &[how; 2000]);
        let _ = queue.rx_post(&mut packet);
    }
}

/// A peer's lies come back as faults, and never as the caller's own mistakes.
fn only_faults(result: Result<usize, Error>) {
    assert!(matches!(result, Ok(_) | Err(Error::Fault(_))), "{result:?}");
}
