// Files that are read and written as a whole: what a failure leaves, and what is not followed.

import EventLoop
import Files
import Glibc
import TestSupport
import Testing

struct WholeFileTests {
    @Test func aFileThatSomebodyNamesIsReadThroughALink() throws {
        let folder = try TemporaryFolder()
        try WholeFile.replace("\(folder.path)/file", with: Array("hello".utf8))
        #expect(symlink("file", "\(folder.path)/link") == 0)
        #expect(try WholeFile.read("\(folder.path)/link") == Array("hello".utf8))
        #expect(WholeFile.readOwn("\(folder.path)/file") == Array("hello".utf8))
        #expect(WholeFile.readOwn("\(folder.path)/link").isEmpty, "a store's own file is never a link")
    }

    @Test func anErrorNamesTheFile() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/absent"
        #expect(throws: SystemError("open \(path)", code: ENOENT)) { try WholeFile.read(path) }
        #expect(throws: SystemError("read \(folder.path)", code: EISDIR)) { try WholeFile.read(folder.path) }
        #expect(WholeFile.readOwn(path).isEmpty)
    }

    @Test func aPipeInThePlaceOfAFileIsNotWaitedFor() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        #expect(WholeFile.readOwn(path).isEmpty)
    }

    @Test("what is larger than a buffer comes whole", arguments: [65_535, 65_536, 65_537, 200_000])
    func large(_ size: Int) throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/file"
        let bytes = Pattern.bytes(0..<size)
        try WholeFile.replace(path, with: bytes)
        #expect(try WholeFile.read(path) == bytes)
        #expect(WholeFile.readOwn(path) == bytes)
    }

    @Test func aFailedReplacementLeavesTheOldFile() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/file"
        try WholeFile.replace(path, with: [1])
        #expect(mkdir("\(path).new", 0o700) == 0)
        #expect(throws: SystemError.self) { try WholeFile.replace(path, with: [2]) }
        #expect(WholeFile.readOwn(path) == [1])
    }

    @Test(
        "what is planted in the place of the new file is not written to",
        arguments: ["symlink", "hard link", "readable", "pipe"]
    )
    func planted(_ kind: String) throws {
        let folder = try TemporaryFolder()
        let (path, victim) = ("\(folder.path)/file", "\(folder.path)/victim")
        try folder.write("victim", "victim")
        #expect(chmod(victim, 0o644) == 0)
        let isMade =
            switch kind {
            case "symlink": symlink("victim", "\(path).new")
            case "hard link": link(victim, "\(path).new")
            case "pipe": mkfifo("\(path).new", 0o666)
            default: rename(victim, "\(path).new")
            }
        #expect(isMade == 0)
        try WholeFile.replace(path, with: Array("secret".utf8))
        #expect(WholeFile.readOwn(path) == Array("secret".utf8))
        if kind != "readable" { #expect(WholeFile.readOwn(victim) == Array("victim".utf8)) }
        var status = stat()
        #expect(lstat(path, &status) == 0)
        #expect(status.st_mode & S_IFMT == S_IFREG && status.st_mode & 0o777 == 0o600 && status.st_nlink == 1)
        #expect(access("\(path).new", F_OK) != 0)
    }

    @Test func onlyWhatIsThereIsAppendedTo() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/file"
        #expect(try WholeFile.append([1], to: path, isSynced: false) == false)
        #expect(access(path, F_OK) != 0)
        try WholeFile.replace(path, with: [1])
        #expect(try WholeFile.append([2, 3], to: path, isSynced: true))
        #expect(WholeFile.readOwn(path) == [1, 2, 3])
    }

    @Test func theNamesInAFolder() throws {
        let folder = try TemporaryFolder()
        #expect(FolderNames.of(folder.path).isEmpty)
        for name in ["a", ".hidden", "b c"] { try WholeFile.replace("\(folder.path)/\(name)", with: []) }
        #expect(FolderNames.of(folder.path).sorted() == [".hidden", "a", "b c"])
        #expect(FolderNames.of("\(folder.path)/absent").isEmpty)
    }
}
