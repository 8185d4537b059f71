"""A file system that is slow, and now and then stands still: what lies in SOURCE, seen at TARGET through FUSE.

    slow_files.py SOURCE TARGET MILLISECONDS

Each call that changes something or makes it durable takes up to so long. While the file SOURCE/../stall exists, every
call waits, as on a network file system whose server is away.
"""
import errno
import os
import random
import sys
import time

from fusepy import FUSE, FuseOSError, Operations


class SlowFiles(Operations):
    def __init__(self, source, delay):
        self.source, self.delay = os.path.realpath(source), delay
        self.stall = os.path.join(os.path.dirname(self.source), "stall")
        self.random = random.Random(1)

    def __call__(self, name, path, *arguments):
        while os.path.exists(self.stall):
            time.sleep(0.02)
        if name in ("create", "fsync", "rename", "truncate", "unlink", "write", "mkdir"):
            time.sleep(self.random.uniform(0, self.delay))
        try:
            return getattr(self, name)(self.source + path, *arguments)
        except AttributeError:
            raise FuseOSError(errno.ENOSYS) from None

    def access(self, path, mode):
        if not os.access(path, mode):
            raise FuseOSError(errno.EACCES)

    def chmod(self, path, mode):
        os.chmod(path, mode)

    def chown(self, path, uid, gid):
        os.lchown(path, uid, gid)

    def create(self, path, mode, fi=None):
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)

    def flush(self, path, handle):
        pass

    def fsync(self, path, datasync, handle):
        os.fsync(handle)

    def fsyncdir(self, path, datasync, handle):
        pass

    def getattr(self, path, handle=None):
        status = os.lstat(path)
        names = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid", "st_blocks")
        return {name: getattr(status, name) for name in names}

    def link(self, target, source):
        os.link(self.source + source, target)

    def mkdir(self, path, mode):
        os.mkdir(path, mode)

    def mknod(self, path, mode, device):
        os.mknod(path, mode, device)

    def open(self, path, flags):
        # The kernel says where to append; a writable file is also read back by whoever maps it.
        return os.open(path, flags & ~os.O_APPEND)

    def read(self, path, size, offset, handle):
        return os.pread(handle, size, offset)

    def readdir(self, path, handle):
        return [".", "..", *os.listdir(path)]

    def readlink(self, path):
        return os.readlink(path)

    def release(self, path, handle):
        os.close(handle)

    def rename(self, old, new):
        os.rename(old, self.source + new)

    def rmdir(self, path):
        os.rmdir(path)

    def statfs(self, path):
        status = os.statvfs(path)
        names = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag", "f_frsize",
                 "f_namemax")
        return {name: getattr(status, name) for name in names}

    def symlink(self, target, source):
        os.symlink(source, target)

    def truncate(self, path, length, handle=None):
        os.truncate(path if handle is None else handle, length)

    def unlink(self, path):
        os.unlink(path)

    def utimens(self, path, times=None):
        os.utime(path, times)

    def write(self, path, data, offset, handle):
        return os.pwrite(handle, data, offset)


FUSE(SlowFiles(sys.argv[1], float(sys.argv[3]) / 1000), sys.argv[2], foreground=True, nothreads=False,
     hard_remove=False, default_permissions=True)
