// Which downloads somebody means who ends them: all of a URL, or those of one request.

import CacheStore
import DownloadCore
import FoundationEssentials
import HTTPTypes
import HTTPWire

struct DownloadTarget: Sendable {
    /// As a download that begins now would ask.
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
    init(
        _ request: HTTPRequest,
        body: Data?,
        _ configuration: DownloadConfiguration,
        _ engine: DownloadEngine?
    ) throws(DownloadError) {
        let plain = try DownloadRequest(request, body: body.map { .data($0) }, configuration, DownloadOptions())
        question = engine?.identified(plain) ?? plain
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
        guard let other = download.asked else { return false }
        if isOfURL { return means(other.key) }
        // Whose credentials the manager has shown since it began makes no other request of it.
        guard other.plainKey == question.plainKey else { return false }
        // Contents that are not in memory are not told from one another: they are meant where none is named.
        guard other.sentMethod == question.sentMethod, other.sentData == question.sentData else { return false }
        // Options add directives to Cache-Control, and are no part of the request; a content that is not in memory
        // brings its media type along.
        let isElsewhere = other.body != nil && other.body?.data == nil
        let leftOut = isElsewhere ? ["cache-control", "content-type"] : ["cache-control"]
        return Self.lines(other.fields, without: leftOut) == Self.lines(question.fields, without: leftOut)
    }

    private static func lines(_ fields: Fields, without names: [String]) -> [String] {
        fields.lines.map { (name: $0.name.lowercased(), value: $0.value) }
            .filter { !names.contains($0.name) }
            .map { "\($0.name): \($0.value)" }
            .sorted()
    }
}
