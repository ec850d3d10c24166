// The journal: the latest requests and their answers, in a bounded number of bytes.

import ServiceCore
import Synchronization

/// The size of the journal, and what it records of a request.
package struct JournalSettings: Sendable, Equatable {
    /// The most bytes of all entries; nil for no journal.
    package var size: Int?
    /// The most bytes that are recorded of a request's body.
    package var bodies = 0
    /// The fields whose values are hidden, in lower case.
    package var redacted: Set<String> = []

    package static let off = JournalSettings()

    package init(size: Int? = nil, bodies: Int = 0, redacted: [String] = []) {
        self.size = size
        self.bodies = bodies
        self.redacted = Set(redacted.map { $0.lowercased() })
    }
}

/// The position of a reader in the journal.
package struct JournalCursor: Sendable {
    fileprivate var position: UInt64
    /// The number of the next entry.
    fileprivate var number: UInt64
    /// The number of entries that were dropped before the reader came to them.
    package fileprivate(set) var missed: UInt64 = 0
}

/// An entry with its number: the first one of a daemon is 1.
package struct NumberedEntry: Sendable, Equatable {
    package let number: UInt64
    package let entry: JournalEntry
}

/// The extent of the journal: its entries, and those that it has dropped.
package struct JournalExtent: Sendable, Equatable {
    package var entries = 0
    package var bytes = 0
    package var limit = 0
    /// The number of entries that made room for later ones since the journal was last cleared.
    package var dropped: UInt64 = 0
    /// The time of the youngest dropped entry, in nanoseconds since 1970; 0 if none was dropped.
    package var droppedUntil: UInt64 = 0
    /// The time at which the journal was switched on, in nanoseconds since 1970, if it has not been cleared since; 0
    /// otherwise.
    package var offUntil: UInt64 = 0
}

/// The answers of all loops, in the order in which they end.
///
/// Sendable: the mutable state is under one mutex, which is held for the copy of one entry or of a page; no task is
/// resumed under it.
package final class Journal: Sendable {
    private typealias Waiter = UnsafeContinuation<Void, Never>

    private struct State {
        var settings: JournalSettings
        var ring: JournalRing?
        /// The end of the previous ring: a new ring begins there, so that no position is used twice.
        var end: UInt64 = 0
        var dropped: UInt64 = 0
        var droppedUntil: UInt64 = 0
        var offUntil: UInt64 = 0
        /// The number of the next entry.
        var number: UInt64 = 1
        /// The tasks that wait for the next entry, by the number of their reader.
        var waiters: [UInt64: Waiter] = [:]
        var readers: Set<UInt64> = []
        var lastReader: UInt64 = 0
        var isOver = false

        /// The number of the oldest entry.
        var firstNumber: UInt64 { number - UInt64(ring?.count ?? 0) }

        mutating func takeWaiters() -> [Waiter] {
            defer { waiters = [:] }
            return Array(waiters.values)
        }

        mutating func drop(_ record: ArraySlice<UInt8>) {
            dropped += 1
            droppedUntil = max(droppedUntil, JournalEntry.time(of: record))
        }
    }

    /// The approximate number of bytes of entries in a page.
    private static let pageSize = 256 << 10
    /// The largest number of readers that follow the journal at the same time.
    package static let maximumReaders = 16

    private let state: Mutex<State>

    package init(_ settings: JournalSettings = .off) {
        state = Mutex(State(settings: settings, ring: settings.size.map { JournalRing(capacity: $0) }))
    }

    package var settings: JournalSettings { state.withLock { $0.settings } }
    /// True if requests are recorded.
    package var isOn: Bool { state.withLock { $0.ring != nil } }

    package var extent: JournalExtent {
        state.withLock { state in
            JournalExtent(
                entries: state.ring?.count ?? 0,
                bytes: state.ring?.size ?? 0,
                limit: state.ring?.capacity ?? 0,
                dropped: state.dropped,
                droppedUntil: state.droppedUntil,
                offUntil: state.offUntil
            )
        }
    }

    /// Takes over the settings of another configuration; the youngest entries stay as far as there is room.
    /// - Parameter now: nanoseconds since 1970.
    package func update(_ settings: JournalSettings, now: UInt64) {
        state.withLock { state in
            let before = state.settings
            state.settings = settings
            guard before.size != settings.size else { return }
            guard let size = settings.size, let old = state.ring else {
                state.end = state.ring?.end ?? state.end
                state.ring = settings.size.map { [end = state.end] in JournalRing(capacity: $0, from: end) }
                // Dropped entries belong to the previous journal, so they are not counted any more.
                (state.dropped, state.droppedUntil) = (0, 0)
                if before.size == nil { state.offUntil = now }
                return
            }
            var ring = JournalRing(capacity: size, from: old.first)
            var position = old.first
            while let (content, next) = old.record(at: position) {
                if !ring.append(Array(content), dropped: { state.drop($0) }) { state.drop(content) }
                position = next
            }
            state.ring = ring
        }
    }

    /// Adds an entry, for which the oldest ones make room. Any thread.
    package func record(_ entry: JournalEntry) {
        let bytes = entry.bytes
        let woken = state.withLock { state -> [Waiter] in
            guard var ring = state.ring else { return [] }
            // The ring is taken out of the state, so that its memory is changed in place.
            state.ring = nil
            if ring.append(bytes, dropped: { state.drop($0) }) {
                state.number += 1
            } else {
                state.drop(bytes[...])
            }
            state.ring = ring
            return state.takeWaiters()
        }
        for waiter in woken { waiter.resume() }
    }

    /// Removes all entries, and resets the count of dropped ones.
    /// - Returns: how many entries there were.
    package func clear() -> Int {
        state.withLock { state in
            defer {
                state.ring?.removeAll()
                (state.dropped, state.droppedUntil, state.offUntil) = (0, 0, 0)
            }
            return state.ring?.count ?? 0
        }
    }

    // MARK: - Reading

    /// The position before the oldest entry.
    package var start: JournalCursor {
        state.withLock { JournalCursor(position: $0.ring?.first ?? 0, number: $0.firstNumber) }
    }

    /// The position behind the youngest entry.
    package var end: JournalCursor {
        state.withLock { JournalCursor(position: $0.ring?.end ?? 0, number: $0.number) }
    }

    /// Reads the next entries, about 256 KiB of them, and moves the cursor behind them; none at the end of the journal.
    package func page(_ cursor: inout JournalCursor) -> [NumberedEntry] {
        var (position, number, missed) = (cursor.position, cursor.number, UInt64(0))
        let records = state.withLock { state -> [ArraySlice<UInt8>] in
            guard let ring = state.ring else { return [] }
            if position < ring.first || position > ring.end || number < state.firstNumber {
                missed = state.firstNumber - min(number, state.firstNumber)
                (position, number) = (ring.first, state.firstNumber)
            }
            var (records, size): ([ArraySlice<UInt8>], Int) = ([], 0)
            while size < Self.pageSize, let (content, next) = ring.record(at: position) {
                records.append(content)
                size += content.count
                position = next
            }
            return records
        }
        let entries = records.enumerated().compactMap { offset, content in
            JournalEntry(bytes: content).map { NumberedEntry(number: number + UInt64(offset), entry: $0) }
        }
        cursor = JournalCursor(
            position: position,
            number: number + UInt64(records.count),
            missed: cursor.missed + missed
        )
        return entries
    }

    // MARK: - Following

    /// Begins to follow the journal from a position. Any thread.
    /// - Returns: nil if there are ``maximumReaders`` already, or if the journal has ended.
    package func follow(from cursor: JournalCursor) -> JournalReader? {
        let id = state.withLock { state -> UInt64? in
            guard !state.isOver, state.readers.count < Self.maximumReaders else { return nil }
            state.lastReader += 1
            state.readers.insert(state.lastReader)
            return state.lastReader
        }
        return id.map { JournalReader(self, $0, cursor) }
    }

    /// Ends the streams of all readers, and admits no others.
    package func stop() {
        let woken = state.withLock { state -> [Waiter] in
            state.isOver = true
            return state.takeWaiters()
        }
        for waiter in woken { waiter.resume() }
    }

    package var readerCount: Int { state.withLock { $0.readers.count } }

    fileprivate func isOver(for id: UInt64) -> Bool {
        state.withLock { $0.isOver || !$0.readers.contains(id) }
    }

    /// Resumes the waiter as soon as there is an entry behind the cursor.
    private func wait(_ id: UInt64, _ cursor: JournalCursor, _ waiter: Waiter) {
        let isDue = state.withLock { state -> Bool in
            guard !state.isOver, state.readers.contains(id), state.number == cursor.number, !Task.isCancelled else {
                return true
            }
            state.waiters[id] = waiter
            return false
        }
        if isDue { waiter.resume() }
    }

    fileprivate func wait(_ id: UInt64, behind cursor: JournalCursor) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { wait(id, cursor, $0) }
        } onCancel: {
            wake(id)
        }
    }

    private func wake(_ id: UInt64) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
        waiter?.resume()
    }

    fileprivate func remove(_ id: UInt64) {
        let waiter = state.withLock { state in
            state.readers.remove(id)
            return state.waiters.removeValue(forKey: id)
        }
        waiter?.resume()
    }
}

/// A reader that follows the journal; its stream ends with this object.
///
/// Sendable: its position is under a mutex, and one caller at a time asks it.
package final class JournalReader: Sendable {
    private let journal: Journal
    private let id: UInt64
    private let cursor: Mutex<JournalCursor>

    fileprivate init(_ journal: Journal, _ id: UInt64, _ cursor: JournalCursor) {
        self.journal = journal
        self.id = id
        self.cursor = Mutex(cursor)
    }

    deinit { close() }

    /// Waits for the next entries. One caller at a time.
    /// - Returns: nil at the end of the stream, or if the task is cancelled.
    package func next() async -> [NumberedEntry]? {
        while !Task.isCancelled, !journal.isOver(for: id) {
            var position = cursor.withLock { $0 }
            let entries = journal.page(&position)
            cursor.withLock { [position] in $0 = position }
            if !entries.isEmpty { return entries }
            await journal.wait(id, behind: position)
        }
        return nil
    }

    /// Ends the stream. Any thread.
    package func close() { journal.remove(id) }
}

/// A ring of bytes that holds whole records; a record is its length in four bytes, and its content.
///
/// Positions count all bytes that were ever written, so that a position tells whether its record is still there.
struct JournalRing {
    /// The number of bytes of one piece: memory is allocated by pieces, when the ring first gets there.
    private static let pieceSize = 64 << 10

    /// The most bytes of all records, their lengths included.
    let capacity: Int
    private let pieceSize: Int
    private var pieces: [[UInt8]] = []
    /// The position of the oldest record.
    private(set) var first: UInt64
    /// The position behind the newest record.
    private(set) var end: UInt64
    private(set) var count = 0

    /// - Parameters:
    ///   - capacity: the most bytes of all records, at least 1; rounded down to whole pieces.
    ///   - start: the position of the first record.
    init(capacity: Int, from start: UInt64 = 0) {
        pieceSize = max(1, min(capacity, Self.pieceSize))
        self.capacity = max(1, capacity / pieceSize) * pieceSize
        first = start
        end = start
    }

    /// The number of bytes of all records, their lengths included.
    var size: Int { Int(end - first) }

    /// Appends a record, and drops as many of the oldest ones as needed.
    /// - Parameter dropped: called with each dropped record.
    /// - Returns: false if the record is longer than the ring; nothing changes then.
    mutating func append(_ record: [UInt8], dropped: (ArraySlice<UInt8>) -> Void) -> Bool {
        let needed = record.count + 4
        guard needed <= capacity else { return false }
        while size + needed > capacity {
            guard let oldest = self.record(at: first) else { return false }
            dropped(oldest.content)
            first = oldest.next
            count -= 1
        }
        let length = UInt32(record.count)
        write((0..<4).map { UInt8(truncatingIfNeeded: length >> (8 * UInt32($0))) })
        write(record)
        count += 1
        return true
    }

    /// The record at a position, and the position of the next one; nil at the end, or if the record was dropped.
    func record(at position: UInt64) -> (content: ArraySlice<UInt8>, next: UInt64)? {
        guard position >= first, position + 4 <= end else { return nil }
        let length = bytes(position..<position + 4).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        let content = position + 4..<position + 4 + length
        guard content.upperBound <= end else { return nil }
        return (bytes(content)[...], content.upperBound)
    }

    mutating func removeAll() {
        pieces = []
        first = end
        count = 0
    }

    private func bytes(_ range: Range<UInt64>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        var position = range.lowerBound
        while position < range.upperBound {
            let (piece, offset) = location(position)
            let count = min(pieceSize - offset, Int(range.upperBound - position))
            result += pieces[piece][offset..<offset + count]
            position += UInt64(count)
        }
        return result
    }

    private mutating func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let (piece, offset) = location(end)
            while pieces.count <= piece { pieces.append([UInt8](repeating: 0, count: pieceSize)) }
            let part = rest.prefix(pieceSize - offset)
            pieces[piece].withUnsafeMutableBytes { buffer in
                UnsafeMutableRawBufferPointer(rebasing: buffer[offset..<offset + part.count]).copyBytes(from: part)
            }
            rest = rest.dropFirst(part.count)
            end += UInt64(part.count)
        }
    }

    private func location(_ position: UInt64) -> (piece: Int, offset: Int) {
        let index = Int(position % UInt64(capacity))
        return (index / pieceSize, index % pieceSize)
    }
}
