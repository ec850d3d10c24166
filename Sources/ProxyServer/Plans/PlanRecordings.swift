// The recordings of a configuration's routes: one folder for each service.

import Configuration
import Policies
import ServiceCore

extension SeedTable {
    /// Opens nothing yet: a folder is made with its first recording.
    /// - Returns: nil where no folder is named, or for plans whose requests are never answered.
    func recordings(_ configuration: RecordingConfiguration, _ place: RoutePlace) -> RecordingPlan? {
        guard let folder = configuration.folder, let opener else { return nil }
        var rules = configuration.rules
        rules.shown = place.notSecret
        return RecordingPlan(
            source: configuration.source,
            rules: rules,
            folder: opener.recordings("\(folder)/\(place.service)"),
            secrets: place.secrets
        )
    }
}
