// The assembly of a server with the proxy's handler on every loop.

package import DownloadCore
package import EventLoop
package import ServiceCore
package import Upstream

/// The parts from which the proxy's handlers are made.
package struct ProxyParts: Sendable {
    package var plan: RoutePlan
    package var core: DownloadCore
    package var resolver: Resolver
    /// The addresses on which this daemon listens for clients.
    package var listeners: [SocketAddress]
    package var adminListeners: [SocketAddress]
    /// The hub to which the events of calls are sent.
    package var events: EventHub
    /// The journal in which requests are recorded if it is on.
    package var journal: Journal
    /// Gets the spans of traced requests.
    package var spans: SpanQueue
    /// Makes the sessions in tunnels that are read; nil if none is.
    package var interception: (any Interception)?

    package init(
        plan: RoutePlan,
        core: DownloadCore,
        resolver: Resolver,
        listeners: [SocketAddress],
        adminListeners: [SocketAddress] = [],
        events: EventHub = EventHub(),
        journal: Journal = Journal(),
        spans: SpanQueue = SpanQueue(),
        interception: (any Interception)? = nil
    ) {
        self.plan = plan
        self.core = core
        self.resolver = resolver
        self.listeners = listeners
        self.adminListeners = adminListeners
        self.events = events
        self.journal = journal
        self.spans = spans
        self.interception = interception
    }
}

extension Server where Handler == ProxyHandler {
    /// Makes the handlers on every loop; listening begins later.
    ///
    /// - Parameters:
    ///   - sink: the destination of access log lines; nil for none.
    ///   - daemonLog: gets the errors of clients and, at debug level, the decisions about each request.
    package convenience init(
        _ parts: ProxyParts,
        loops: LoopGroup,
        settings: ServerSettings,
        sink: AccessLogSink?,
        daemonLog: ServerLog = .nowhere
    ) async {
        await self.init(
            loops: loops,
            settings: settings,
            sink: sink,
            daemonLog: daemonLog,
            journal: parts.journal,
            clock: parts.core.clock
        ) { context, loop in
            ProxyHandler(
                on: loop,
                plan: parts.plan,
                core: parts.core,
                client: UpstreamClient(on: loop, resolver: parts.resolver),
                context: context,
                listeners: OwnListeners(
                    clients: parts.listeners,
                    admin: parts.adminListeners,
                    resolver: parts.resolver
                ),
                events: parts.events,
                spans: parts.spans,
                interception: parts.interception
            )
        }
    }
}
