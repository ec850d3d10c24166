// The seed folders of a configuration: each is opened once, whoever uses it.

package import CacheStore
internal import Configuration
package import DemoMode
internal import DownloadCore
package import EventLoop

/// What opening seed folders needs.
package struct SeedOpener: Sendable {
    let pool: IOPool
    let onTrouble: @Sendable (String) -> Void

    /// - Parameters:
    ///   - pool: reads the files.
    ///   - onTrouble: told once of each seed that is left out, and why; any thread.
    package init(pool: IOPool, onTrouble: @escaping @Sendable (String) -> Void) {
        self.pool = pool
        self.onTrouble = onTrouble
    }
}

/// A configuration without an error in it that cannot be put in force all the same.
package enum PlanError: Error, Sendable, Equatable, CustomStringConvertible {
    case demo(DemoFileError)
    case seed(SeedError)
    case standIn(DemoFileError)

    package var description: String {
        switch self {
        case .demo(let error): error.description
        case .seed(let error): error.description
        case .standIn(let error):
            "\(error.path), which is to answer as 'cache.placeholder' or 'cache.fallback', cannot be read; "
                + "correct its path, or its permissions"
        }
    }
}

/// The folders of one configuration.
struct SeedTable {
    /// Nil opens nothing: for plans whose requests are never answered.
    let opener: SeedOpener?
    private(set) var opened: [SeedConfiguration: SeedFolder] = [:]
    /// The files of placeholders and fallbacks, each read once.
    var standIns: [StandInConfiguration: StandIn] = [:]

    init(_ opener: SeedOpener?) { self.opener = opener }

    /// Blocks.
    mutating func folder(_ configuration: SeedConfiguration?) throws(PlanError) -> SeedFolder? {
        guard let configuration, let opener else { return nil }
        if let known = opened[configuration] { return known }
        do throws(SeedError) {
            let folder = try SeedFolder(
                path: configuration.path,
                layout: configuration.layout,
                mode: configuration.mode,
                pool: opener.pool,
                onTrouble: opener.onTrouble
            )
            opened[configuration] = folder
            return folder
        } catch {
            throw .seed(error)
        }
    }
}
