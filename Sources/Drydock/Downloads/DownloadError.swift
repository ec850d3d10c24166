// Why a download brought nothing: each case says what happened, where, and what to do.

import CacheStore
import DownloadCore
import FoundationEssentials
import HTTPTypes
import Upstream

/// A failed download.
///
/// Results are held by reference: each frame of a task that may throw an error has room for one.
public enum DownloadError: Error, Sendable, Hashable {
    /// The task was cancelled, or ``DownloadManager/cancel(_:silently:)`` or ``DownloadManager/cancelAll(silently:)``
    /// ended the download. What is stored is as it was.
    case cancelled
    /// What was asked for cannot be: the text says why and what to write instead.
    case invalidRequest(String)
    /// The manager has been closed.
    case closed
    /// The manager could not be opened: its folder, a seed folder or a thread could not be had. The
    /// next download tries again.
    case unavailable(String)
    /// The origin could not be asked, or broke its word, and nothing stored may stand in.
    case origin(OriginFailure)
    /// The origin answered, with a status that is not among
    /// ``DownloadConfiguration/acceptedStatuses``: this came.
    indirect case unacceptableStatus(DownloadResult)
    /// Only what is stored was wanted, and nothing is, or the manager is offline.
    case notStored(String)
    /// More than ``DownloadConfiguration/maximumFetches`` are under way, and too many wait already.
    case busy(String)
    /// The body is larger than ``DownloadConfiguration/maximumBody`` bytes: download it to a file.
    case tooLarge(limit: Int)
    /// The file that was asked for could not be written; there is none, or the one that was there before. Of a resource
    /// that is a file: it could not be read.
    case file(String)
    /// The body has come whole, and could not be put in the place of the file that was asked for, as the text says.
    /// It is in ``DownloadResult/file`` instead, beside that path: the program moves it where it wants it, or removes
    /// it.
    indirect case notInPlace(DownloadResult, String)
    /// The content of the request could not be had as a whole, or is needed again and can be had once: the text says
    /// which and why. The origin may have got a part of it, and took it for no whole request.
    case requestBody(String)

    /// What became of the download, as one of the eight outcomes: ``DownloadOutcome/invalid`` where nobody was asked,
    /// else ``DownloadOutcome/downloadFailed``.
    public var outcome: DownloadOutcome {
        switch self {
        case .invalidRequest, .closed, .unavailable: .invalid
        default: .downloadFailed
        }
    }
}

/// How an origin failed.
public struct OriginFailure: Sendable, Hashable {
    /// What kind of failure it is.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// The host has no address, or no name server could be asked for it.
        case unknownHost
        /// Nothing listens there, or no way leads there.
        case unreachable
        /// The origin's certificate does not verify, TLS failed, or a file of the TLS settings cannot be used.
        case untrusted
        /// One of ``DownloadConfiguration/timeouts`` passed.
        case timeout
        /// It has failed several times in a row, and is not asked for a while (``DownloadConfiguration/breaker``).
        case leftAlone
        /// The connection ended before all had come: nothing of it passes as complete, and none of it is lost where the
        /// origin sends ranges.
        case cutShort
        /// What came is no HTTP/1.1, or leads round in circles.
        case protocolViolation
        /// A failure on this side, such as too many open files.
        case local
    }

    /// What kind of failure it is.
    public let kind: Kind
    /// Names the host and the path, and says what to do.
    public let detail: String

    /// Makes a failure, for a program's own tests.
    public init(kind: Kind, detail: String) {
        self.kind = kind
        self.detail = detail
    }
}

extension DownloadError: CustomStringConvertible {
    /// What happened and what to do.
    public var description: String {
        switch self {
        case .cancelled: "the download was cancelled"
        case .closed: "the download manager has been closed: make another one"
        case .invalidRequest(let text), .unavailable(let text), .notStored(let text), .busy(let text), .file(let text),
            .requestBody(let text):
            text
        case .origin(let failure): failure.detail
        case .unacceptableStatus(let result):
            "\(result.url) answered \(result.head.status.code): look at the result, or accept that status"
                + result.refusalText
        case .tooLarge(let limit):
            "the body is larger than \(limit) bytes: download it to a file, or raise DownloadConfiguration.maximumBody"
        case .notInPlace(let result, let reason):
            "\(result.url) came whole, and could not be put in its place: \(reason); "
                + "take it from \(result.file?.path(percentEncoded: false) ?? "")"
        }
    }
}

extension DownloadError {
    /// The error for an answer that did not come.
    init(_ error: FetchError) {
        switch error {
        case .cancelled, .stopped: self = .cancelled
        case .onlyIfCached(let text), .unrecorded(let text), .unanswered(let text), .misdirected(let text),
            .targetRefused(let text):
            self = .notStored(text)
        case .offline: self = .notStored(ProgramWords.told(error.description))
        case .notAdmitted(let text), .parkExpired(let text): self = .busy(ProgramWords.told(text))
        case .unavailable(let text, seconds: _): self = .origin(OriginFailure(kind: .leftAlone, detail: text))
        case .upstream(let error): self = Self(error)
        case .inner, .redirect, .mapping, .type:
            self = .origin(OriginFailure(kind: .protocolViolation, detail: error.description))
        }
    }

    init(_ error: UpstreamError) {
        let kind: OriginFailure.Kind
        switch error.kind {
        case .request, .requestBody:
            self = .invalidRequest(error.detail)
            return
        case .cancelled:
            self = .cancelled
            return
        case .nameNotFound, .resolver: kind = .unknownHost
        case .connectionRefused, .unreachable, .addressRefused, .proxy: kind = .unreachable
        case .certificate, .tls, .tlsFile: kind = .untrusted
        case .timeout: kind = .timeout
        case .closed, .truncated: kind = .cutShort
        case .protocolViolation, .unexpectedStatus: kind = .protocolViolation
        case .internal: kind = .local
        }
        self = .origin(OriginFailure(kind: kind, detail: ProgramWords.told(error.detail)))
    }

    /// The error for a body that ended before its last byte.
    init(_ error: BodyError, _ url: String) {
        switch error {
        case .cancelled: self = .cancelled
        case .tooSlow, .truncated, .abandoned, .source, .damaged:
            self = .origin(OriginFailure(kind: .cutShort, detail: "\(url) did not come whole: \(error); ask again"))
        case .file(let error):
            self = .origin(OriginFailure(kind: .local, detail: "\(url) could not be read from the store: \(error)"))
        }
    }
}

// MARK: - The words of programs

/// The texts of the modules below, which advise the operators of daemons, as a program needs them: with the settings of a
/// manager in the place of the keys of a configuration file.
enum ProgramWords {
    private static let offlineAdvice =
        "and the manager is offline, so that nobody is asked; set its isOffline to false to end that"

    private static let settings = [
        (
            "in use by another daemon: stop it, or set cache.disk.path",
            "in use by another process: end it, or set DownloadConfiguration.disk.folder"
        ),
        ("raise timeout.first_byte", "raise DownloadConfiguration.timeouts.firstByte"),
        ("raise timeout.", "raise DownloadConfiguration.timeouts."),
        ("raise max_concurrent or max_queue.length,", "raise DownloadConfiguration.maximumFetches,"),
        ("raise max_concurrent or max_queue.wait,", "raise DownloadConfiguration.maximumFetches,"),
    ]

    static func told(_ text: String) -> String {
        if text.hasSuffix(FetchError.offlineAdvice) {
            return text.dropLast(FetchError.offlineAdvice.count) + offlineAdvice
        }
        var text = text
        for (word, setting) in settings where text.contains(word) { text = text.replacing(word, with: setting) }
        return text
    }
}
