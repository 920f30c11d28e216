use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::schema::no_random;
use crate::engine::Owner;
use crate::journal::{JournalError, JournalErrorKind};
use crate::runtime;

/// Who this open journal is: a file beside the database whose lock the kernel
/// frees when the process dies, however it dies, and keeps while it is stopped.
pub(super) struct Instance {
    owner: Owner,
    folder: PathBuf,
    /// Locked until it is given up.
    lock: Mutex<Option<File>>,
}

impl Instance {
    pub(super) fn new(database: &Path) -> Result<Self, JournalError> {
        let mut folder = database.as_os_str().to_owned();
        folder.push(".owners");
        let folder = PathBuf::from(folder);
        make_private(&folder).map_err(|error| cannot(&folder, &error))?;
        sweep(&folder);
        // Somebody's sweep may take a new file for a dead one's before it is locked.
        for _ in 0..16 {
            let owner = Owner::new(u128::from_ne_bytes(runtime::random_bytes().map_err(no_random)?));
            let path = path(&folder, owner);
            let lock = create(&path).map_err(|error| cannot(&path, &error))?;
            if lock.try_lock().is_ok() && path.exists() {
                return Ok(Self { owner, folder, lock: Mutex::new(Some(lock)) });
            }
        }
        Err(JournalError::new(JournalErrorKind::Io, format!("no lock can be had on a file in {}", folder.display())))
    }

    pub(super) const fn owner(&self) -> Owner {
        self.owner
    }

    /// The journal was closed: whatever this owner left is free.
    pub(super) fn give_up(&self) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        if lock.is_some() {
            let _ = fs::remove_file(path(&self.folder, self.owner));
        }
    }

    /// Whether that owner's process lives and holds the journal open.
    pub(super) fn is_alive(&self, owner: Owner) -> Result<bool, JournalError> {
        if owner == self.owner {
            return Ok(true);
        }
        let path = path(&self.folder, owner);
        is_locked(&path).map_err(|error| cannot(&path, &error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn path(folder: &Path, owner: Owner) -> PathBuf {
    folder.join(format!("{:032x}", owner.id()))
}

/// A file that is gone was given up in an orderly way.
fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // Shared, so that two who look at once do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes what dead processes left.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Ok(file) = File::open(&path)
            && file.try_lock_shared().is_ok()
        {
            // While it is locked, so that nobody new can hold it.
            let _ = fs::remove_file(&path);
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        outcome => outcome,
    }
}

fn cannot(path: &Path, error: &io::Error) -> JournalError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => JournalErrorKind::ReadOnly,
        io::ErrorKind::StorageFull => JournalErrorKind::Full,
        _ => JournalErrorKind::Io,
    };
    JournalError::new(kind, format!("the owner's lock {} cannot be used", path.display()))
        .with_source(error.to_string())
}
