// Collections from a JSON file that requests read and change in memory: lists and items with create, read, update and
// delete.

import Content
import EventLoop
import HTTPWire
import Synchronization

/// The way in which the id of a new item is made.
package enum NewIDs: String, Sendable, CaseIterable {
    /// One more than the highest number among the ids.
    case counting
    /// A UUID that is made from the rule's seed.
    case uuid
}

/// The collections of one file.
///
/// Shared by every loop: the state is under a mutex, and a change is completed within one hold of it. A list is copied
/// as a value and searched outside of the lock.
package final class DemoCollection: Sendable {
    /// The entity tag of the file that the collection starts with; a file with other bytes has another one.
    package let entityTag: String
    package let idName: String
    package let newIDs: NewIDs
    private let start: CollectionState
    private let limit: Int
    private let state: Mutex<CollectionState>
    /// The size of the state after the last change: a loop reads it without waiting for a long change.
    private let sizeNow: Atomic<Int>

    /// The least room for all items as JSON, in bytes.
    private static let room = 16 << 20

    /// - Parameter idName: the member with the id of an item.
    /// - Throws: the reason why the file is not a collection.
    package init(_ file: DemoFile, idName: String = "id", newIDs: NewIDs = .counting) throws(CollectionFileError) {
        entityTag = file.entityTag
        self.idName = idName
        self.newIDs = newIDs
        start = try CollectionState(file.bytes, idName: idName)
        limit = max(Self.room, 2 * file.bytes.count)
        state = Mutex(start)
        sizeNow = Atomic(start.size)
    }

    /// Resets all items to those of the file. Any thread.
    package func reset() {
        let before = state.exchange(start)
        sizeNow.store(start.size, ordering: .relaxed)
        // The former state is released outside of the lock, since it may be large.
        withExtendedLifetime(before) {}
    }

    /// The approximate bytes of all items as JSON, which tell whether an answer may take long. Any thread.
    package var size: Int { sizeNow.load(ordering: .relaxed) }

    /// Answers a request, and makes its changes. Any thread; takes long for long lists.
    package func answer(_ request: CollectionRequest) -> CollectionAnswer {
        do throws(CollectionRefusal) {
            return try CollectionExchange(request, idName: idName, newIDs: newIDs, limit: limit).answer(state, sizeNow)
        } catch {
            let problem = DemoProblem(error.status, error.title, error.detail)
            var answer = CollectionAnswer(error.status, problem.fields, problem.body)
            if !error.fields.isEmpty { answer.fields.append("Allow", error.fields.joined(separator: ", ")) }
            return answer
        }
    }
}

/// The collections of a service, by the names of their rules; the changes of requests outlive a reload.
///
/// Sendable: the table is under a mutex, and collections protect themselves.
package final class DemoCollections: Sendable {
    private let table = Mutex<[String: DemoCollection]>([:])

    package init() {}

    /// The collection of a rule: the present one with its changes, or a new one if the file is another one now.
    /// - Throws: the reason why the file is not a collection; then nothing changes.
    package func collection(
        of rule: String,
        _ file: DemoFile,
        idName: String,
        newIDs: NewIDs
    ) throws(CollectionFileError) -> DemoCollection {
        let known = table.withLock { $0[rule] }
        if let known, known.entityTag == file.entityTag, known.idName == idName, known.newIDs == newIDs { return known }
        let fresh = try DemoCollection(file, idName: idName, newIDs: newIDs)
        // The former collection is released outside of the lock, since it may be large.
        let before = table.withLock { table in table.updateValue(fresh, forKey: rule) }
        withExtendedLifetime(before) {}
        return fresh
    }

    /// Resets all collections to their files. Any thread.
    package func reset() {
        for collection in table.withLock({ Array($0.values) }) { collection.reset() }
    }
}
