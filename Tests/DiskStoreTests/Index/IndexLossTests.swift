// An index that is damaged while the disk has no room for another one.

import Glibc
import SQLite
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite struct IndexLossTests {
    private func kind(_ failure: IndexFailure) -> String {
        switch failure {
        case .unwritten: "unwritten"
        case .replaced: "replaced"
        }
    }

    @Test func `the last of 200,000 failures is told the same way as the first`() async throws {
        let folder = Folder()
        let index = try DiskIndex.open("\(folder.path)/index.sqlite", stamp: 1).index
        let addresses = Mutex<[Int]>([])
        index.observe { _ in
            var mark = 0
            let address = withUnsafeMutablePointer(to: &mark) { Int(bitPattern: $0) }
            addresses.withLock { $0.append(address) }
        }
        for _ in 0..<200_000 { index.fail(SQLiteError(.full, "no room", path: index.path)) }
        #expect(addresses.withLock { $0.count } == 200_000)
        // AddressSanitizer has addresses of its own for such variables.
        #if !DRYDOCK_SANITIZED
            #expect(Set(addresses.withLock { $0 }).count == 1, "a failure goes deeper than the one before")
        #endif
        index.close(count: 0)
    }

    @Test func `an index that cannot be replaced is replaced as soon as it can be`() async throws {
        let folder = Folder()
        let path = "\(folder.path)/index.sqlite"
        let index = try DiskIndex.open(path, stamp: 1).index
        let told = Mutex<[String]>([])
        index.observe { failure in told.withLock { $0.append(kind(failure)) } }
        // Nothing can be made in the place of a folder, which nobody removes.
        DiskIndex.remove(path)
        #expect(mkdir(path, 0o700) == 0)
        index.submit { index.fail(SQLiteError(.corrupt, "damaged", path: path)) }
        index.note(.removeAll)
        await index.pass()
        #expect(told.withLock { $0 } == ["unwritten", "unwritten"] && index.isIncomplete)
        rmdir(path)
        index.note(.removeAll)
        await index.pass()
        #expect(told.withLock { $0 } == ["unwritten", "unwritten", "replaced"] && !index.isIncomplete)
        index.note(.removeAll)
        await index.pass()
        #expect(told.withLock { $0.count } == 3)
        index.close(count: 0)
        // A late call leaves the file to whoever has it now.
        index.fail(SQLiteError(.misuse, "the database is closed", path: path))
        #expect(told.withLock { $0.last } == "unwritten")
        #expect(try DiskIndex.open(path, stamp: 1).count == 0)
    }
}
