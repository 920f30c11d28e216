//! What goes over the wire, where to, and how often.

use std::collections::BTreeSet;

use bytes::Bytes;
use oncekey::engine::AttemptKind;
use oncekey::reqwest::Body;
use oncekey::{Effect, ErrorKind};

use crate::data::{After, Read, Reply, Report};
use crate::run::{Name, Run};
use crate::scene::{CAPTURED, Scene};
use crate::script::{Server, answer};

pub(crate) fn redir_01(report: &Report) -> Vec<Run> {
    let moved = |status: u16| {
        move |scene: &mut Scene| {
            scene.expect.http_status = Some(status);
            scene.first().reply = Some(Reply::new(status, "").with("Location", "/moved"));
            not_followed(scene);
        }
    };
    vec![report.as_given(not_followed), report.variant("301", moved(301)), report.variant("303", moved(303))]
}

// That no other path is asked for holds for every run: see `checks::always`.
fn not_followed(scene: &mut Scene) {
    scene.check(|e, problems| {
        let Some(error) = e.error(problems) else {
            return;
        };
        problems.same("effect", error.effect(), Effect::Unknown);
        problems.same("kind", error.kind(), ErrorKind::Unsettled);
        problems.that(error.to_string().contains("redirect"), error.to_string());
        let location = error.response().and_then(|answer| answer.headers().get("location"));
        problems.that(location.is_some(), "where it was sent to is lost");
    });
}

pub(crate) fn redir_02(report: &Report) -> Vec<Run> {
    let mut scene = Scene::of(report);
    not_followed(&mut scene);
    let second_origin = report.expect.second_origin_requests;
    let play = async move {
        let stranger = Server::start(Box::new(|_, _| answer(true, Reply::json(201, CAPTURED))), 0).await;
        scene.steps = vec![answer(false, Reply::new(307, "").with("Location", &stranger.url("/steal")))];
        let mut findings = scene.play().await;
        let record = stranger.record();
        findings.problems.same("second origin's requests", Some(record.requests.len()), second_origin);
        findings.problems.same("second origin's connections", record.connections, 0);
        findings
    };
    vec![Run::new(Name::AsGiven, play)]
}

pub(crate) fn proxy_01(report: &Report) -> Vec<Run> {
    // What the proxy does with its two copies is told by the script: executed,
    // and a 409 to the first request that the client sent.
    vec![report.as_given(|scene| {
        scene.check(|e, problems| {
            let kinds: Vec<AttemptKind> = e.attempts().iter().map(|attempt| attempt.kind()).collect();
            problems.same("kinds of attempt", kinds, vec![AttemptKind::First, AttemptKind::Poll]);
        });
    })]
}

pub(crate) fn body_01(report: &Report) -> Vec<Run> {
    let reset = |size: usize| {
        move |scene: &mut Scene| {
            sized(size)(scene);
            let first = scene.first();
            (first.read, first.reply, first.after) = (Read::Half, None, After::Rst);
        }
    };
    const KIB: usize = 1024;
    vec![
        report.as_given(sized(KIB)),
        report.also("no bytes", sized(0)),
        report.also("1 MiB", sized(KIB * KIB)),
        report.variant("b: reset half-way through the upload", reset(KIB)),
        report.also("b, no bytes", reset(0)),
        report.also("b, 1 MiB", reset(KIB * KIB)),
        report.variant("c: streaming body", sized(KIB)),
    ]
}

fn sized(size: usize) -> impl Fn(&mut Scene) {
    move |scene| {
        scene.body = (b'a'..=b'z').cycle().take(size).collect();
        scene.check(move |e, problems| {
            let lines = |name| e.record.requests.iter().map(|seen| seen.lines(name)).collect::<BTreeSet<Vec<&str>>>();
            problems.same("Content-Type", lines("Content-Type"), BTreeSet::from([vec!["application/json"]]));
            let (found, length) = (lines("Content-Length"), size.to_string());
            // Without a body the line may be missing (RFC 9112, 6.3), but from all attempts or none.
            let expected = if size == 0 && found.contains(&vec![]) { vec![] } else { vec![length.as_str()] };
            problems.same("Content-Length", found.clone(), BTreeSet::from([expected]));
        });
    }
}

/// There is no streaming body to be refused: what is no `Into<Bytes>` does not
/// compile. Were it one, `_` could stand for either meaning, and this would not.
const _: () = <Body as NotBytes<_>>::HOLDS;

trait NotBytes<Meaning> {
    const HOLDS: () = ();
}

impl<T> NotBytes<()> for T {}

struct IsBytes;

impl<T: Into<Bytes>> NotBytes<IsBytes> for T {}
