// Which downloads somebody means who ends them: all of a URL, or those of one request.

import CacheStore
import DownloadCore
import FoundationEssentials
import HTTPTypes
import HTTPWire

struct DownloadTarget: Sendable {
    private let question: DownloadRequest
    /// Those of a URL, whatever they ask with.
    private let isOfURL: Bool

    /// All downloads of a URL.
    /// - Throws: `DownloadError.invalidRequest`.
    init(_ url: URL, _ configuration: DownloadConfiguration) throws(DownloadError) {
        question = try DownloadRequest(url, configuration, DownloadOptions())
        isOfURL = true
    }

    /// Downloads of one request.
    /// - Throws: `DownloadError.invalidRequest`.
    init(_ request: HTTPRequest, body: Data?, _ configuration: DownloadConfiguration) throws(DownloadError) {
        question = try DownloadRequest(request, body: body.map { .data($0) }, configuration, DownloadOptions())
        isOfURL = false
    }

    /// - Parameter core: nil where nothing has been downloaded yet.
    /// - Returns: how many downloads there were.
    func cancel(in sessions: DownloadSessions, _ core: DownloadCore?, silently: Bool) -> Int {
        let count = sessions.cancel(silently: silently, where: means)
        // One key is that of requests whose fields differ, too.
        let isShared = !isOfURL && sessions.contains { $0.asked?.key == question.key }
        if !isShared { _ = core?.cancel(means) }
        return count
    }

    /// - Parameter core: nil where nothing has been downloaded yet.
    /// - Returns: how many downloads there were.
    func dropWaiters(in sessions: DownloadSessions, _ core: DownloadCore?, silently: Bool) -> Int {
        // Before they leave: a fetch must not end because the last of them does.
        core?.keepGoing(means)
        return sessions.cancel(silently: silently, where: means)
    }

    private func means(_ key: CacheKey) -> Bool {
        isOfURL ? key.urlBytes.elementsEqual(question.key.urlBytes) : key == question.key
    }

    private func means(_ download: any DownloadUnderWay) -> Bool {
        guard let other = download.asked, means(other.key) else { return false }
        return isOfURL || other.method == question.method && Self.lines(other.fields) == Self.lines(question.fields)
    }

    /// Options add directives to Cache-Control, and are no part of the request.
    private static func lines(_ fields: Fields) -> [String] {
        fields.lines.filter { $0.name.lowercased() != "cache-control" }.map { "\($0.name.lowercased()): \($0.value)" }
            .sorted()
    }
}
