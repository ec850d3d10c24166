// The files and folders that a configuration names besides its demo answers: seeds, stand-ins and recordings, each opened once,
// and the errors of those that cannot be read.

package import CacheStore
import Configuration
import Content
package import DemoMode
import DownloadCore
package import EventLoop
import Policies
package import ServiceCore

/// What opening seed folders needs.
package struct SeedOpener: Sendable {
    let pool: IOPool
    let onTrouble: @Sendable (String) -> Void
    /// Those of recordings.
    package let folders = RecordingFolders()

    /// - Parameters:
    ///   - pool: reads the files.
    ///   - onTrouble: called once for each seed that is left out, with the reason; any thread.
    package init(pool: IOPool, onTrouble: @escaping @Sendable (String) -> Void) {
        self.pool = pool
        self.onTrouble = onTrouble
    }

    /// The folder of recordings at a path: one for all plans.
    func recordings(_ path: String) -> RecordingFolder {
        folders.folder(path) {
            RecordingFolder(path: path, pool: pool, prepare: { [folders] in folders.prepare() }, onTrouble: onTrouble)
        }
    }
}

/// Why a valid configuration cannot be put in force.
package enum PlanError: Error, Sendable, Equatable, CustomStringConvertible {
    case demo(DemoFileError)
    case seed(SeedError)
    case standIn(DemoFileError)
    /// An answer file that its route's mapping makes nothing of.
    case mapping(file: String, String)
    /// An answer file, or a text of the configuration, that is no template.
    case template(String, TemplateError)
    case collection(String, CollectionFileError)
    /// A document that requests are to be checked by.
    case document(String)

    package var description: String {
        switch self {
        case .demo(let error): error.description
        case .seed(let error): error.description
        case .mapping(let file, let message): "the demo answer \(file): \(message)"
        case .template(let source, let error): "\(source): the template is wrong at \(error)"
        case .collection(let file, let error): "the file \(file) is no collection: \(error)"
        case .document(let message): message
        case .standIn(let error):
            "\(error.path), which is to answer as 'cache.placeholder' or 'cache.fallback', cannot be read; "
                + "correct its path, or its permissions"
        }
    }
}

/// The folders of one configuration.
struct SeedTable {
    /// Nil opens no folder: for plans whose requests are never answered.
    let opener: SeedOpener?
    private(set) var opened: [SeedConfiguration: SeedFolder] = [:]
    /// The files of placeholders and fallbacks, each read once.
    var standIns: [StandInConfiguration: SubstituteResponse] = [:]

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

extension SeedTable {
    /// Reads the files that have not been read for this configuration yet. Blocks.
    /// - Throws: `PlanError` naming the file.
    mutating func phases(
        _ cache: CacheConfiguration,
        expect: ContentExpectation = .anything,
        types: ExpectedTypes? = nil
    ) throws(PlanError) -> PhasePlan? {
        var plan = PhasePlan(expect: expect, types: types)
        if let placeholder = cache.placeholder {
            plan.placeholder = try standIn(placeholder.answer)
            plan.placeholderDelay = placeholder.after
        }
        if let fallback = cache.fallback { plan.fallback = try standIn(fallback) }
        return plan.isEmpty ? nil : plan
    }

    private mutating func standIn(_ configuration: StandInConfiguration) throws(PlanError) -> SubstituteResponse {
        if let known = standIns[configuration] { return known }
        do throws(DemoFileError) {
            let file = try DemoFile.load(path: configuration.file)
            let made = SubstituteResponse(
                path: file.path,
                status: configuration.status,
                bytes: file.bytes,
                contentType: file.contentType
            )
            standIns[configuration] = made
            return made
        } catch {
            throw .standIn(error)
        }
    }
}

extension SeedTable {
    /// Opens nothing yet: a folder is made with its first recording.
    /// - Returns: nil where no folder is named, or for plans whose requests are never answered.
    func recordings(_ configuration: RecordingConfiguration, _ label: RouteLabel) -> RecordingPlan? {
        guard let folder = configuration.folder, let opener else { return nil }
        var rules = configuration.rules
        rules.shown = label.notSecret
        return RecordingPlan(
            source: configuration.source,
            rules: rules,
            folder: opener.recordings("\(folder)/\(label.service)"),
            secrets: label.secrets
        )
    }
}
