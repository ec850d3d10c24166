// Stored responses as plain files, for programs that read a resource without asking for it.

import EventLoop
import Glibc
import HTTPCaching

extension DiskTier {
    /// Where ``keepAsFile(_:as:onlyIfMissing:)`` puts files.
    package var filesFolder: String { "\(folder.path)/files" }

    /// Copies the body of a stored response to a file in ``filesFolder``, which has either the old bytes or the new
    /// ones at any moment. The copy stays until the next one takes its place.
    /// - Parameters:
    ///   - name: a relative path without empty or dot segments.
    ///   - onlyIfMissing: leaves a file alone that is there.
    /// - Throws: `DiskTierError`, `BodyError` or `SystemError`; the file is as it was then.
    package func keepAsFile(_ entry: DiskEntry, as name: String, onlyIfMissing: Bool = false) async throws {
        let place = "\(filesFolder)/\(name)"
        if onlyIfMissing, try await pool.run({ access(place, F_OK) == 0 }) { return }
        let response = try await load(entry, via: nil, policy: CachePolicy(), isUse: false)
        try await pool.run { [self] in
            let room = Int(clamping: response.body.knownLength ?? 0)
            guard reserve(room) else { throw SystemError("write \(place)", code: ENOSPC) }
            // The space is reserved only while the copy is written: a plain copy does not
            // count towards the tier's size.
            defer { release(room) }
            let temporary = folder.temporary()
            defer { unlink(temporary) }
            _ = try BodyFile.write(response.body, to: temporary)
            var path = filesFolder
            for part in [""] + name.split(separator: "/").dropLast().map({ "/\($0)" }) {
                path += part
                if mkdir(path, 0o755) != 0, errno != EEXIST { throw SystemError("mkdir \(path)") }
            }
            guard rename(temporary, place) == 0 else { throw SystemError("rename to \(place)") }
        }
    }
}
