// Collections over a JSON file that requests read and change, in memory: lists and items with create, read, update and
// delete.

import Content
import EventLoop
import HTTPWire
import Synchronization

/// How the id of a new item is made.
package enum NewIDs: String, Sendable, CaseIterable {
    /// One more than the highest number among the ids.
    case counting
    /// A UUID out of the rule's seed.
    case uuid
}

/// The collections of one file.
///
/// Shared by every loop: the state is under a mutex, and a change is made whole within one hold of it. A list is taken
/// out as a value and searched outside.
package final class DemoCollection: Sendable {
    /// The entity tag of the file that the collection begins with; a file with other bytes has another one.
    package let entityTag: String
    package let idName: String
    package let newIDs: NewIDs
    private let start: CollectionState
    private let limit: Int
    private let state: Mutex<CollectionState>
    /// The size of `state` as the last change left it: a loop asks for it, which must not wait for a long change.
    private let sizeNow: Atomic<Int>

    /// Bytes of all items as JSON, at least.
    private static let room = 16 << 20

    /// - Parameter idName: the member that tells items apart.
    /// - Throws: why the file is no collection.
    package init(_ file: DemoFile, idName: String = "id", newIDs: NewIDs = .counting) throws(CollectionFileError) {
        entityTag = file.entityTag
        self.idName = idName
        self.newIDs = newIDs
        start = try CollectionState(file.bytes, idName: idName)
        limit = max(Self.room, 2 * file.bytes.count)
        state = Mutex(start)
        sizeNow = Atomic(start.size)
    }

    /// Everything is as the file has it again. Any thread.
    package func reset() {
        let before = state.exchange(start)
        sizeNow.store(start.size, ordering: .relaxed)
        // Released outside: there may be much of it.
        withExtendedLifetime(before) {}
    }

    /// Bytes of all items as JSON, about: whether an answer may take long. Any thread.
    package var size: Int { sizeNow.load(ordering: .relaxed) }

    /// Answers a request, and changes what it asks to change. Any thread; long for long lists.
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

/// The collections of a service, by the rule that plays them: what requests have made of them outlives a reload.
///
/// Sendable: the table is under a mutex, and collections protect themselves.
package final class DemoCollections: Sendable {
    private let table = Mutex<[String: DemoCollection]>([:])

    package init() {}

    /// The collection of a rule: as requests have left it, or a new one where the file is another one now.
    /// - Throws: why the file is no collection; then all stays as it was.
    package func collection(
        of rule: String,
        _ file: DemoFile,
        idName: String,
        newIDs: NewIDs
    ) throws(CollectionFileError) -> DemoCollection {
        let known = table.withLock { $0[rule] }
        if let known, known.entityTag == file.entityTag, known.idName == idName, known.newIDs == newIDs { return known }
        let fresh = try DemoCollection(file, idName: idName, newIDs: newIDs)
        // Released outside of the lock: there may be much of it.
        let before = table.withLock { table in table.updateValue(fresh, forKey: rule) }
        withExtendedLifetime(before) {}
        return fresh
    }

    /// Everything is as the files have it again. Any thread.
    package func reset() {
        for collection in table.withLock({ Array($0.values) }) { collection.reset() }
    }
}
