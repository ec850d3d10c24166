// The settings of the server, the journal and the access log that a configuration gives.

package import Configuration
import HTTPWire
package import ProxyServer
package import ServiceCore

extension ServerSettings {
    package init(_ configuration: Configuration) {
        let limits = configuration.limits
        self.init(
            name: configuration.name,
            head: HeadLimits(head: limits.head, fields: limits.fields, field: limits.field, target: limits.target),
            headTimeout: limits.headTimeout,
            idle: limits.idle,
            bodyRate: limits.bodyRate,
            connections: limits.connections,
            perClient: limits.perClient,
            clients: configuration.clients
        )
    }
}

extension JournalSettings {
    package init(_ configuration: JournalConfiguration) {
        self.init(size: configuration.size, bodies: configuration.bodies ?? 0, redacted: configuration.redact)
    }
}

extension TracingSettings {
    package init(_ configuration: TracingConfiguration) {
        let collector = configuration.collector.map {
            OriginAddress(scheme: $0.scheme, host: $0.host, port: $0.port, basePath: $0.path)
        }
        self.init(collector: collector, sample: configuration.sample)
    }
}

extension AccessLogSettings {
    /// Request ids go on to origins only if a log has them: an id without its line is of no use.
    package init(_ log: LogConfiguration) {
        let destination: Destination =
            switch log.access {
            case .off: .off
            case .stdout: .stdout
            case .stderr: .stderr
            case .file(let path): .file(path: path)
            }
        let format: Format =
            switch log.format.ofAccessLog {
            case .json: .json
            case .combined: .combined
            case .text: .text
            }
        let isLogged = destination != .off && format == .json
        let passesIDs = log.requestID && (isLogged || log.tracesRequests)
        self.init(destination, format: format, passesIDs: passesIDs)
    }
}
