// The jobs folder: what it makes, and what it says of what it cannot write or read.

import DownloadCore
import EventLoop
import Foundation
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite struct JobFolderTests {
    private func record(_ id: String) -> JobRecord {
        JobRecord(id: id, kind: .prefetch, created: 1, downloads: true, batch: Batch([], options: BatchOptions()))
    }

    @Test func `what is written is found again, for its user alone`() throws {
        let temporary = try TemporaryFolder()
        let path = temporary.file("some/where/jobs")
        let above = temporary.file("some/where")
        // Nothing is made above it but by what marks that.
        #expect(throws: SystemError.self) { try JobFolder(path: path) {}.write { record("1") } }
        #expect(!FileManager.default.fileExists(atPath: above))
        let folder = JobFolder(path: path) { try Folders.make(above, mode: 0o700) }
        let records = [record("2"), record("10")]
        for record in records.reversed() { try folder.write { record } }
        try folder.write { nil }
        let (found, errors) = folder.load()
        #expect(found == records)
        #expect(errors.isEmpty)
        for (path, mode) in [(path, 0o700), ("\(path)/2.json", 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == mode)
        }
        folder.remove("2")
        #expect(folder.load().records == [records[1]])
    }

    @Test func `a folder that cannot be made is named, with the reason`() throws {
        let temporary = try TemporaryFolder()
        let file = try temporary.write("file", "")
        for (path, reason) in [(file, "Not a directory"), ("\(file)/jobs", "Not a directory")] {
            let error = #expect(throws: SystemError.self) { try JobFolder(path: path) {}.write { record("1") } }
            #expect(error?.description == "mkdir \(path): \(reason)")
        }
    }

    @Test func `what cannot be read is named and left alone, and what was not finished goes`() throws {
        let temporary = try TemporaryFolder()
        let files = [("1.json", "{"), ("2.json", "{}"), ("3.tmp", "{"), ("4.txt", "other"), ("6.json.new", "{")]
        for (name, text) in files {
            try temporary.write(name, text)
        }
        // A folder is no file that can be read.
        try FileManager.default.createDirectory(atPath: temporary.file("5.json"), withIntermediateDirectories: false)
        let (found, errors) = JobFolder(path: temporary.path) {}.load()
        #expect(found.isEmpty)
        let parts = errors.sorted().map { $0.prefix { $0 != "(" } }
        #expect(
            parts == [
                "\(temporary.file("1.json")) cannot be read as a job, and is left alone; remove it ",
                "\(temporary.file("2.json")) cannot be read as a job, and is left alone; remove it ",
                "\(temporary.file("5.json")) cannot be read, and is left alone: Is a directory; see to its permissions, or remove it",
            ]
        )
        let names = try FileManager.default.contentsOfDirectory(atPath: temporary.path)
        #expect(names.sorted() == ["1.json", "2.json", "4.txt", "5.json"])
    }
}
