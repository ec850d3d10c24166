// What one download wants otherwise than its manager has it.

public import HTTPTypes
public import Policies

/// The wishes of one download. They are a value: nothing that is downloaded changes them.
public struct DownloadOptions: Sendable, Hashable {
    /// Who says how long what comes stays valid; nil, the default, is the manager's ``DownloadConfiguration/mode`` for a
    /// download, and ``DownloadConfiguration/Mode/http`` for a `Resource`: the origin says it. Where it is named
    /// here, ``DownloadConfiguration/overridesOrigin`` does not count.
    public var mode: DownloadConfiguration.Mode?
    /// The methods of questions, which ask and change nothing: their answers are stored, and who asks the same while one
    /// is under way gets its answer, too. GET, which includes HEAD, and POST with a content that is in memory can be
    /// named; the answer to a POST is stored for POSTs with the same content. Every other request is sent each time,
    /// alone, and its success removes what is stored of its target (RFC 9111 section 4.4).
    ///
    /// nil, the default, is GET alone for a `Resource`; a download has POST, too, in
    /// ``DownloadConfiguration/Mode/fixedLifetime``.
    public var methods: Set<HTTPRequest.Method>?
    /// How long what comes stays valid; nil, the default, is the manager's ``DownloadConfiguration/lifetime``, and none for
    /// a `Resource` whose origin says nothing about it.
    public var lifetime: Duration?
    /// The lifetimes of responses by their status; nil, the default, is the manager's ``DownloadConfiguration/lifetimes``.
    public var lifetimes: [Int: Duration]?
    /// Looks into ``DownloadConfiguration/seeds`` first, if there are any. True by default.
    public var usesSeeds: Bool
    /// How what is stored is used; ``CachePolicy/useStored`` by default.
    public var cachePolicy: CachePolicy
    /// Events begin with the stored response when that is no longer valid, while it is checked. False by default; a
    /// download without events knows only its final result.
    public var yieldsStaleFirst: Bool
    /// What the body should be. One that is something else, such as an error page in the place of an image, is handed
    /// over and not kept, and the log says so; what was stored without this expectation is not used. Anything by default.
    public var expectation: ContentExpectation
    /// The media types of a success; nil, the default, is the manager's
    /// ``DownloadConfiguration/acceptedContentTypes``.
    public var acceptedContentTypes: [String]?
    /// How long the origin may take; nil, the default, is the manager's ``DownloadConfiguration/timeouts``. Whoever
    /// joins a transfer that is under way has that transfer's, as with the two that follow.
    public var timeouts: DownloadConfiguration.Timeouts?
    /// How a request that failed is made again; nil, the default, is the manager's ``DownloadConfiguration/retry``.
    public var retry: RetryPolicy?
    /// Redirects that are followed; nil, the default, is the manager's ``DownloadConfiguration/maximumRedirects``.
    public var maximumRedirects: Int?
    /// Who comes first where ``DownloadConfiguration/maximumFetches`` are under way; nil, the default, is
    /// ``Priority/normal``, and ``Priority/low`` in a batch.
    public var priority: Priority?

    /// Wishes; those that are left out are the defaults.
    public init(
        lifetime: Duration? = nil,
        usesSeeds: Bool = true,
        cachePolicy: CachePolicy = .useStored,
        yieldsStaleFirst: Bool = false,
        expectation: ContentExpectation = .anything,
        lifetimes: [Int: Duration]? = nil,
        acceptedContentTypes: [String]? = nil,
        timeouts: DownloadConfiguration.Timeouts? = nil,
        retry: RetryPolicy? = nil,
        maximumRedirects: Int? = nil,
        priority: Priority? = nil,
        mode: DownloadConfiguration.Mode? = nil,
        methods: Set<HTTPRequest.Method>? = nil
    ) {
        self.mode = mode
        self.methods = methods
        self.lifetimes = lifetimes
        self.acceptedContentTypes = acceptedContentTypes
        self.timeouts = timeouts
        self.retry = retry
        self.maximumRedirects = maximumRedirects
        self.priority = priority
        self.lifetime = lifetime
        self.usesSeeds = usesSeeds
        self.cachePolicy = cachePolicy
        self.yieldsStaleFirst = yieldsStaleFirst
        self.expectation = expectation
    }
}

extension DownloadOptions {
    /// As a resource has them where it says nothing else: the origin says how long an answer stays valid, and GET alone
    /// asks a question.
    package var ofResource: Self {
        var options = self
        if mode == nil {
            options.mode = .http
            if lifetime == nil { options.lifetime = .zero }
        }
        if methods == nil { options.methods = [.get] }
        return options
    }

    /// How a download uses what is stored.
    public enum CachePolicy: Sendable, Hashable, CaseIterable {
        /// What is stored and valid is the answer; else the origin is asked.
        case useStored
        /// The origin is asked, whatever is stored and however valid it is. What comes is stored in the place of the
        /// stored response, which stays until the new one is whole.
        case reload
        /// What is stored is the answer, or there is none: the origin is never asked, neither for a size nor behind the
        /// answer.
        case storedOnly
        /// What is stored is left alone: nothing is looked up in memory or on disk, and nothing is kept; seeds are
        /// looked up all the same.
        case bypass
    }

    /// Who comes first where downloads wait for one another. Of five in a row at most four pass over those of a lower
    /// priority, so that nobody waits for ever; within a priority, they go in the order in which they came.
    public enum Priority: Sendable, Hashable, CaseIterable {
        /// After the others.
        case low
        /// Where nothing else is said.
        case normal
        /// Before the others, as are the requests for sizes of a batch.
        case high
    }
}
