//! A program killed again and again pays once.

use crate::programs::{Running, example};

#[test]
fn killed_again_and_again_it_pays_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut crash = example("crash");
    crash.args(["--operations", "25", "--seed", "7"]).env("TMPDIR", folder.path());
    let ended = Running::start(&mut crash).end().exits(0).says("25 operations, ").says(" kills, 25 executions\n");
    assert!(ended.stdout.contains(" requests, 25 keys, "), "{ended:#?}");
    assert!(!ended.stdout.contains(", 0 kills,"), "{ended:#?}");
    assert_eq!(ended.stderr, "");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it leaves nothing behind");
}

#[test]
#[cfg(unix)]
fn stopped_by_hand_it_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut crash = example("crash");
    crash.args(["--operations", "100000", "--seed", "7"]).env("TMPDIR", folder.path());
    let running = Running::start(&mut crash);
    let is_begun =
        || std::fs::read_dir(folder.path()).unwrap().flatten().any(|made| made.path().join("payments.db-wal").exists());
    while !is_begun() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal("INT");
    running.end().exits(1).tells("crash: interrupted (seed 7)");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn it_says_how_it_is_used() {
    let mut crash = example("crash");
    Running::start(crash.args(["--operations", "many"])).end().exits(2).tells("needs a number").tells("usage: crash");
}
