// A file layer that fails as it is told: by call, by path, by errno, after so many calls.

import Glibc
import Synchronization
import Testing

@testable import CacheStore
@testable import DiskStore

/// One way in which the disk fails.
struct Fault: Sendable, CustomTestStringConvertible {
    enum Call: Sendable { case open, read, write, truncate, rename, unlink, makeFolder }

    var call: Call
    var code: Int32
    /// A part of the path; for two names, of either of them.
    var path: String
    /// Calls that go well before the first that fails.
    var after = 0
    /// The call does so many bytes before the next one fails.
    var partly: Int?
    /// Calls that fail, or do a part; then all goes well again.
    var times = Int.max

    var testDescription: String { "\(call) in \(path): errno \(code)\(after > 0 ? " after \(after)" : "")" }
}

/// Sendable: what fails, and what has been opened, is under a mutex.
final class FaultyFiles: Sendable {
    private struct State {
        var fault: Fault?
        var seen = 0
        var paths: [Int32: String] = [:]
        var available: Int64?
        var failures = 0
        /// Inodes that are left, and how it fails without.
        var inodes: (left: Int, code: Int32)?
        var bytesRead = 0
    }

    private let state = Mutex(State())

    /// From now on; nil for a disk that works again.
    func fail(_ fault: Fault?) {
        state.withLock { state in
            state.fault = fault
            state.seen = 0
        }
    }

    /// What the file system has left; nil for what it really has.
    func setAvailable(_ bytes: Int64?) { state.withLock { $0.available = bytes } }

    /// A file system that takes so many more files and folders, and no more until some are removed.
    func limitInodes(_ count: Int, code: Int32) { state.withLock { $0.inodes = (count, code) } }

    /// Inodes that are left.
    var inodes: Int { state.withLock { $0.inodes?.left ?? .max } }

    /// Bytes that have been read since the last time.
    func takeBytesRead() -> Int {
        state.withLock { state in
            defer { state.bytesRead = 0 }
            return state.bytesRead
        }
    }

    private func takeInode() -> Bool {
        let code: Int32? = state.withLock { state in
            guard let inodes = state.inodes else { return nil }
            guard inodes.left > 0 else {
                state.failures += 1
                return inodes.code
            }
            state.inodes?.left -= 1
            return nil
        }
        if let code { errno = code }
        return code == nil
    }

    private func giveInode() { state.withLock { $0.inodes?.left += 1 } }

    /// Calls that were made to fail.
    var failures: Int { state.withLock { $0.failures } }

    var calls: FileCalls {
        let real = FileCalls.real
        var calls = real
        calls.open = { [self] path, flags, mode in
            if let verdict = check(.open, path) { return verdict < 0 ? -1 : real.open(path, flags, mode) }
            let isNew = flags & O_CREAT != 0 && access(path, F_OK) != 0
            if isNew, !takeInode() { return -1 }
            let file = real.open(path, flags, mode)
            if isNew, file < 0 { giveInode() }
            if file >= 0 { state.withLock { $0.paths[file] = path } }
            return file
        }
        calls.read = { [self] file, room, offset in
            guard let verdict = check(.read, path(file)) else {
                let count = real.read(file, room, offset)
                state.withLock { $0.bytesRead += max(0, count) }
                return count
            }
            return verdict < 0 ? -1 : real.read(file, Self.first(verdict, of: room), offset)
        }
        calls.write = { [self] file, bytes, offset in
            guard let verdict = check(.write, path(file)) else { return real.write(file, bytes, offset) }
            let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(max(0, verdict)))
            return verdict < 0 ? -1 : real.write(file, part, offset)
        }
        calls.truncate = { [self] file, length in check(.truncate, path(file)) == nil ? real.truncate(file, length) : -1
        }
        calls.rename = { [self] from, to in
            guard check(.rename, from + to) == nil else { return -1 }
            let replaces = access(to, F_OK) == 0
            let result = real.rename(from, to)
            if result == 0, replaces { giveInode() }
            return result
        }
        calls.unlink = { [self] path in
            guard check(.unlink, path) == nil else { return -1 }
            let result = real.unlink(path)
            if result == 0 { giveInode() }
            return result
        }
        calls.makeFolder = { [self] path in
            guard check(.makeFolder, path) == nil else { return -1 }
            let isNew = access(path, F_OK) != 0 && access(String(path.dropLast(3)), F_OK) == 0
            if isNew, !takeInode() { return -1 }
            let result = real.makeFolder(path)
            if isNew, result != 0 {
                let code = errno
                giveInode()
                errno = code
            }
            return result
        }
        calls.removeFolder = { [self] path in
            let result = real.removeFolder(path)
            if result == 0 { giveInode() }
            return result
        }
        calls.available = { [self] folder in state.withLock { $0.available } ?? real.available(folder) }
        return calls
    }

    private static func first(_ count: Int, of room: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: room.prefix(max(0, count)))
    }

    private func path(_ file: Int32) -> String { state.withLock { $0.paths[file] ?? "" } }

    /// Nil where the call goes well; a count of bytes where a part of it does; -1, and `errno`, where it fails.
    private func check(_ call: Fault.Call, _ path: String) -> Int? {
        let (verdict, code): (Int?, Int32) = state.withLock { state in
            guard let fault = state.fault, fault.call == call, path.contains(fault.path) else { return (nil, 0) }
            state.seen += 1
            guard state.seen > fault.after, state.seen - fault.after <= fault.times else { return (nil, 0) }
            state.failures += 1
            if let partly = fault.partly, state.seen == fault.after + 1 { return (partly, 0) }
            return (-1, fault.code)
        }
        if verdict == -1 { errno = code }
        return verdict
    }
}

/// What the tier has told about its disk.
final class Told: Sendable {
    private let troubles = Mutex<[DiskTrouble]>([])

    func note(_ trouble: DiskTrouble) { troubles.withLock { $0.append(trouble) } }

    var all: [DiskTrouble] { troubles.withLock { $0 } }
    var kinds: [DiskTrouble.Kind] { all.map(\.kind) }
}

/// Monotonic nanoseconds that a test moves.
final class SettableClock: Sendable {
    private let nanoseconds = Atomic<UInt64>(1)

    var now: UInt64 { nanoseconds.load(ordering: .relaxed) }

    func advance(_ count: UInt64) { nanoseconds.wrappingAdd(count, ordering: .relaxed) }
}

/// So many times yes.
final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func next() -> Bool { left.wrappingSubtract(1, ordering: .relaxed).oldValue > 0 }
}
