// What a download manager is told when it is made: how long things stay valid, where they are kept, and what they are
// found by.

public import FoundationEssentials
public import HTTPTypes
// The policies are words of this module, too: programs see them with `import Drydock`.
@_exported public import Policies
import ServiceCore

/// The settings of a manager; a change makes another manager. What is not set has the default that stands with it.
public struct DownloadConfiguration: Sendable, Hashable {
    /// Who says how long a response stays valid. ``Mode/fixedLifetime`` by default.
    public var mode = Mode.fixedLifetime
    /// How long a response stays valid, counted from the download or the last check that succeeded; 2 hours by default.
    /// Zero asks the origin every time. In ``Mode/http``, for responses that say nothing about it themselves.
    public var lifetime = Duration.seconds(7200)
    /// The same for responses with these statuses, where it wins over ``lifetime``; none by default. A status that is
    /// no success is kept only if it is named here, such as `[404: .seconds(60)]`.
    public var lifetimes: [Int: Duration] = [:]
    /// In ``Mode/http``, whether ``lifetime`` and ``lifetimes`` count although the origin says otherwise; never over
    /// `no-store` and `private`. False by default.
    public var overridesOrigin = false
    /// Names of query items that are no part of what a stored response is found by, such as `utm_*`: `*` stands for
    /// anything, and names are compared as they are sent. The origin gets such items only where nothing may be stored
    /// (``DownloadOptions/CachePolicy/bypass``). None by default.
    public var ignoredQueryItems: [String] = []
    /// Fields of the request by whose values a stored response is found, besides its URL, for an origin that answers by
    /// them without saying so in Vary; none by default.
    public var keyFields: [HTTPField.Name] = []
    /// Variants of one URL that are kept, by the fields that Vary names; the oldest goes. 32 by default.
    public var maximumVariants = 32
    /// How a stored response that is no longer valid is checked. By HEAD, by default.
    public var validation = ValidationMethod.head
    /// How long a stored response is used without another check after one that failed; 30 seconds by default.
    public var checkPause = Duration.seconds(30)
    /// For so long after its lifetime a response is used at once while it is checked behind; zero by default.
    public var staleWhileRevalidate = Duration.zero
    /// For so long after its lifetime a response is used when the origin fails; nil, the default, is without a limit in
    /// ``Mode/fixedLifetime``, and one day in ``Mode/http``.
    public var staleIfError: Duration?
    /// What becomes of a stored response when a check answers 404 or 410. ``MissingRule/fail`` by default.
    public var missing = MissingRule.fail
    /// What a check by HEAD compares in ``Mode/fixedLifetime``, the most telling first; all of them by default.
    public var comparisons = ComparisonRule.allCases
    /// Bytes that a body must have to be kept; a shorter one is downloaded each time. 0 by default.
    public var minimumLength: Int64 = 0
    /// What becomes of a transfer when everybody who waited for it has left. ``AbandonmentPolicy/finish`` by
    /// default.
    public var abandonment = AbandonmentPolicy.finish
    /// Whether what is stored answers more than one user, by the rules of RFC 9111 for shared caches: nothing is kept
    /// that is `private`, or that answers a request with credentials and does not allow it. False by default: such
    /// responses are kept, and found by requests with the same credentials alone.
    public var isShared = false
    /// What is shown to origins, by their names: `HOST`, `HOST:PORT`, or either with `https://` or `http://` before it;
    /// without, `https` is meant. Of names that match an origin, the one that says the most counts. A request with an
    /// `Authorization` of its own is sent as it is, and no other origin gets them after a redirect. None by default.
    public var credentials: [String: CredentialSource] = [:]
    /// Whether cookies that origins set are sent to them again, where they are kept, and what is stored of answers with
    /// cookies. ``CookieSettings/none`` by default.
    public var cookies = CookieSettings.none
    /// What may be kept in memory; nil keeps nothing there. 64 MiB by default.
    public var memory: MemoryLimits? = MemoryLimits()
    /// What may be kept on disk, and where; nil keeps nothing there. 1 GiB by default.
    public var disk: DiskStore? = DiskStore()
    /// Resources that are there before anything is downloaded; none by default.
    public var seeds: Seeds?
    /// Fields of every request that does not bring them itself; `User-Agent: Drydock/VERSION` by default.
    public var headerFields: HTTPFields = [.userAgent: "Drydock/\(DrydockVersion.current)"]
    /// Asks origins for the content codings gzip and br, and hands over bytes that are decoded; true by default. What is
    /// stored stays coded. A request with an `Accept-Encoding` or a `Range` of its own is sent as it is, and what comes
    /// is handed over as it came.
    public var decodesContent = true
    /// How long the origin may take.
    public var timeouts = Timeouts()
    /// How an `https` origin is verified.
    public var tls = TLS()
    /// Redirects that are followed for one download; zero takes a redirect for the answer. 10 by default.
    public var maximumRedirects = 10
    /// The hosts that a redirect may lead to besides the one that was asked: `HOST` or `HOST:PORT`, where `HOST` may be
    /// `*.example.com` or `*`. An internal address must be named by its host alone. nil, the default, is any.
    public var redirectHosts: [String]?
    /// How a request that failed is made again. ``RetryPolicy/never`` by default.
    public var retry = RetryPolicy.never
    /// When an origin that fails is left alone: downloads of what is not stored fail then without asking it
    /// (``OriginFailure/Kind/leftAlone``). nil, the default, is never.
    public var breaker: BreakerPolicy?
    /// The statuses of an answer that is a success, of single downloads and in batches; every other one is an error.
    /// 200 to 299 by default.
    public var acceptedStatuses = 200..<300
    /// The media types of a success: `text/html`, `image/*`. An answer of another type is a failure of its origin, and
    /// is not kept. Empty, the default, is any.
    public var acceptedContentTypes: [String] = []
    /// Requests to origins at once, checks among them; the others wait in the order in which they came, and no timeout
    /// runs while they do. nil sets no limit, and less than 1 counts as 1; 10 by default.
    public var maximumFetches: Int? = 10
    /// Bytes of a body that a result may hold; 256 MiB by default. A download to a file has no such limit.
    public var maximumBody = 256 << 20
    /// Threads that downloads run on; less than 1 counts as 1, which is the default.
    public var threads = 1
    /// The name of this cache in the field Cache-Status; `drydock` by default.
    public var name = "drydock"

    /// The defaults.
    public init() {}
}

extension DownloadConfiguration {
    /// Who says how long a response stays valid.
    public enum Mode: Sendable, Hashable, CaseIterable {
        /// The manager: ``DownloadConfiguration/lifetime`` counts, whatever the fields of the response say. For origins
        /// whose fields say nothing useful.
        case fixedLifetime
        /// The origin, by the rules of RFC 9111.
        case http
    }

    /// A folder of resources that are there before anything is downloaded.
    public struct Seeds: Sendable, Hashable {
        /// The folder; it is listed when the manager opens.
        public var folder: URL
        /// How the files are named; ``SeedLayout/url`` by default.
        public var layout: SeedLayout
        /// What the folder is used for; ``SeedUse/pinned`` by default.
        public var use: SeedUse

        /// Seeds in `folder`.
        public init(folder: URL, layout: SeedLayout = .url, use: SeedUse = .pinned) {
            self.folder = folder
            self.layout = layout
            self.use = use
        }
    }

    /// What may be kept in memory.
    public struct MemoryLimits: Sendable, Hashable {
        /// Bytes of everything that is held; 64 MiB by default.
        public var size: Int
        /// How many responses; 10 000 by default.
        public var count: Int
        /// Bytes of one body; 8 MiB by default.
        public var maximumEntrySize: Int
        /// Whether a quarter of what is held goes with every second in which the system is short of memory, by what the
        /// control group of the process says, or the whole machine; true by default. The log says so.
        public var givesWayUnderPressure: Bool

        /// Limits with these numbers.
        public init(
            size: Int = 64 << 20,
            count: Int = 10_000,
            maximumEntrySize: Int = 8 << 20,
            givesWayUnderPressure: Bool = true
        ) {
            self.size = size
            self.count = count
            self.maximumEntrySize = maximumEntrySize
            self.givesWayUnderPressure = givesWayUnderPressure
        }
    }

    /// What may be kept on disk, and where.
    public struct DiskStore: Sendable, Hashable {
        /// The folder, which is made where there is none, and which no other manager, process or daemon may use at the
        /// same time. One that is not empty and was not made by a manager is refused
        /// (``DownloadError/unavailable(_:)``), and nothing in it is touched; so is the folder of a daemon.
        ///
        /// nil, the default, is `$XDG_CACHE_HOME/PROGRAM/download`, or `~/.cache/PROGRAM/download`. Where that one cannot
        /// be had, the manager goes on with memory alone, and its logger warns: there is no home, the disk cannot be
        /// written, or another process of the program has the folder, which belongs to one manager at a time. Name a
        /// folder for each process where all of them are to keep what they download.
        public var folder: URL?
        /// Bytes of all files; 1 GiB by default.
        public var size: Int64
        /// Bytes of one body; as many as ``size`` by default.
        public var maximumEntrySize: Int64?
        /// Bytes that stay free on the file system; 512 MiB by default. Where others fill it, stored responses make
        /// room, within seconds and without any download; the log says so.
        public var minimumFree: Int64

        /// A store in `folder` with these limits.
        public init(
            folder: URL? = nil,
            size: Int64 = 1 << 30,
            maximumEntrySize: Int64? = nil,
            minimumFree: Int64 = 512 << 20
        ) {
            self.folder = folder
            self.size = size
            self.maximumEntrySize = maximumEntrySize
            self.minimumFree = minimumFree
        }
    }

    /// How long an origin may take; nil is for ever. None of them runs while a download waits for its turn.
    public struct Timeouts: Sendable, Hashable {
        /// For the name, the connection and TLS; 10 seconds by default.
        public var connect: Duration?
        /// The time from the end of the request to the head of the answer; 120 seconds by default.
        public var firstByte: Duration?
        /// The time between two bytes of a body; 120 seconds by default.
        public var idle: Duration?
        /// For everything; none by default.
        public var total: Duration?

        /// Timeouts of these lengths.
        public init(
            connect: Duration? = .seconds(10),
            firstByte: Duration? = .seconds(120),
            idle: Duration? = .seconds(120),
            total: Duration? = nil
        ) {
            self.connect = connect
            self.firstByte = firstByte
            self.idle = idle
            self.total = total
        }
    }

    /// How an `https` origin is verified, and how the program shows itself to it. TLS 1.2 is the least version.
    public struct TLS: Sendable, Hashable {
        /// Whether certificate and name are verified; true by default.
        public var verifies: Bool
        /// A PEM file whose authorities replace the system's; nil, the default, is the system's.
        public var authorities: URL?
        /// A PEM file with the program's own certificate, its chain included; none by default.
        public var certificate: URL?
        /// A PEM file with the key of ``certificate``; nil, the default, where it is in the same file.
        public var key: URL?
        /// Public keys of which the origin must have one, each as `sha256//` and the Base64 of the SHA-256 digest of its
        /// SubjectPublicKeyInfo, as for `curl --pinnedpubkey`; empty, the default, is any. With another key, or where
        /// none of the texts is a pin, the download fails as untrusted.
        public var pins: [String] = []

        private var handler: Identified<@Sendable (TLSChallenge) async -> TLSChallenge.Answer>?

        /// Asked about an origin whose certificate does not verify, and about one that asks for a certificate where
        /// ``certificate`` is nil: once for each origin and public key, for all downloads that wait, and its answer
        /// counts as long as the manager lives. Nobody is asked about a key that is not among ``pins``, where there are
        /// any. nil, the default, refuses the one, and shows no certificate to the other.
        ///
        /// It may take its time: no timeout runs meanwhile. Two settings are equal where one is a copy of the other.
        public var onChallenge: (@Sendable (TLSChallenge) async -> TLSChallenge.Answer)? {
            get { handler?.value }
            set { handler = newValue.map { Identified($0) } }
        }

        /// Settings with these files.
        public init(verifies: Bool = true, authorities: URL? = nil, certificate: URL? = nil, key: URL? = nil) {
            self.verifies = verifies
            self.authorities = authorities
            self.certificate = certificate
            self.key = key
        }
    }
}
