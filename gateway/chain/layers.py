"""From chain entries to built layers, and from layers to plans: once per tenant, at load."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from gateway.chain.compiled import Chain, nowhere
from gateway.chain.hooks import check_hooks
from gateway.chain.onion import Layer, tell_inside
from gateway.chain.order import REJECT, WARN, Finding, check_order
from gateway.chain.plan import Model
from gateway.chain.plugin import build_foreign, installed, load_file, load_installed
from gateway.chain.unpriced import unpriced
from gateway.chain.uses import Uses
from gateway.config.chain import PLUGIN, ChainEntry, When
from gateway.config.complaints import complaints
from gateway.config.errors import ConfigError, Mistake, did_you_mean
from gateway.config.node import View
from gateway.config.patterns import fits
from gateway.config.schema import Tree
from gateway.config.sound import Sound
from gateway.core.call import Call, ModelRef
from gateway.middleware.base import Build, Middleware, OptionError, Proceed
from gateway.middleware.ports import Ports
from gateway.middleware.registry import KINDS, load_kind
from gateway.telemetry.cells import Registry
from gateway.telemetry.metrics import Metrics
from gateway.version import VERSION

_APART = "{} would be kept by each worker for itself: set stores.state to a Redis address, or server.workers to 1"


class Chains:
    """What all chains of a process are built with: the model call inside, and the ports."""

    def __init__(self, trip: Proceed, ports: Ports) -> None:
        self._trip = trip
        self._ports = ports

    def builder(self, tree: Tree, models: Mapping[str, ModelRef]) -> "ChainBuilder":
        """Return the builder for one configuration."""
        folder = Path(tree.sources[0]).parent if tree.sources else Path()
        builder = ChainBuilder(self._trip, self._ports, models, folder)
        builder.source = tree.sources[0] if tree.sources else ""
        builder.is_apart = tree.server.workers > 1 and tree.stores.state.reveal() == "memory"
        return builder


@cache
def known_middleware() -> tuple[str, ...]:
    """Return every kind a chain may name; packages are not looked for twice."""
    return (*KINDS, *installed())


def middleware_rows() -> list[dict[str, Any]]:
    """Return every kind with what it is and its options, as plain data (G-REG-2)."""
    rows: list[dict[str, Any]] = []
    for name in (*KINDS, *(each for each in installed() if each not in KINDS)):
        try:
            kind = load_kind(name) if name in KINDS else load_installed(name)
        except OptionError as error:
            rows.append({"name": name, "summary": "", "error": str(error)})
            continue
        if kind is not None:
            schema = kind.options.model_json_schema(by_alias=True)
            rows.append({"name": name, "summary": kind.summary, "options": schema})
    return rows


class ChainBuilder:
    """Builds the chains of one configuration; mistakes are gathered and raised together."""

    def __init__(
        self, trip: Proceed, ports: Ports, models: Mapping[str, ModelRef], folder: Path
    ) -> None:
        self._trip = trip
        self._ports = ports
        self._models = models
        self._folder = folder
        self.mistakes: list[Mistake] = []
        self.findings: dict[str, list[Finding]] = {}
        self.built: dict[str, Chain] = {}
        self.source = ""
        self.is_apart = False
        """Whether each of several processes would count for itself (K18)."""

    def build(self, tenant: str, entries: Iterable[ChainEntry], agent: str = "") -> Chain:
        """Return the chain of a tenant or agent; what is wrong with it is added to `mistakes`."""
        chain = [entry for entry in entries if entry.mode != "off"]
        found = check_order(chain)
        name = f"{tenant}/{agent}" if agent else tenant
        self.findings[name] = found
        for finding in found:
            if finding.rule.result == REJECT:
                self._complain(finding.entry, str(finding))
        for entry in chain:
            if self.is_apart and entry.kind in KINDS and KINDS[entry.kind].guards:
                self._complain(entry, _APART.format(entry.id))
        built = (self.layer(tenant, agent, entry) for entry in chain)
        layers = [layer for layer in built if layer is not None]
        conditions = {entry.id: entry.when for entry in chain}
        join_layers(layers, conditions)
        tell_inside(layers)
        whole = Chain(tuple(layers), tuple(conditions[layer.id] for layer in layers), self._trip)
        self.built[name] = whole
        return whole

    def uses(
        self, tenant: str, chain: Chain, wanted: Iterable[str], models: Mapping[str, ModelRef]
    ) -> Uses:
        """Return what lets requests of a tenant bring middleware of their own, over `models`, those it may call."""
        allowed: dict[str, frozenset[str]] = {}
        for name in wanted:
            try:
                allowed[name] = self._usable(name)
            except OptionError as error:
                self.mistakes.append(
                    Mistake(self.source, 0, 0, f"tenants.{tenant}.use", str(error))
                )

        def make(entry: ChainEntry) -> tuple[Layer | None, list[Mistake]]:
            apart = ChainBuilder(self._trip, self._ports, models, self._folder)
            return apart.layer(tenant, "", entry), apart.mistakes

        return Uses(chain, allowed, frozenset(known_middleware()), make)

    def _usable(self, name: str) -> frozenset[str]:
        """Return the options of a kind that a request may not set; raises OptionError for one it may not bring."""
        if name in KINDS and KINDS[name].guards:
            message = f"{name} protects somebody: a request that brings its own would lift it"
            raise OptionError(message)
        if name not in known_middleware():
            message = f'there is no middleware "{name}"{did_you_mean(name, known_middleware())}'
            raise OptionError(message)
        kind = load_kind(name) if name in KINDS else load_installed(name)
        return kind.reserved if kind is not None else frozenset()

    def layer(self, tenant: str, agent: str, entry: ChainEntry) -> Layer | None:
        """Build one layer; None when it cannot be, which is then among the mistakes."""
        try:
            kind = self._class_of(entry)
            options = kind.options.model_validate(dict(entry.options))
            build = Build(
                tenant=tenant,
                agent=agent,
                id=entry.id,
                shadow=entry.mode == "shadow",
                ports=self._ports,
                models=self._models,
                direct=self._trip,
                folder=self._folder,
            )
            own = entry.kind in KINDS
            middleware = kind(options, build) if own else build_foreign(kind, options, build)
            check_hooks(middleware)
        except ValidationError as error:
            path = (*entry.path.split("."),) if entry.path else ()
            view = View(entry.node(), path)
            kind_options = self._class_of(entry).options
            self.mistakes += [
                _below(each, entry) for each in complaints(error, View(view.node), kind_options)
            ]
            return None
        except OptionError as error:
            self._complain(entry, str(error), error.field)
            return None
        count = self._ports.metrics.counter

        def tell(verdict: str) -> None:
            count("gateway_shadow_verdicts_total", entry.id, verdict).inc()

        return Layer(
            id=entry.id,
            kind=entry.kind,
            middleware=middleware,
            log=entry.log,
            foreign=entry.kind not in KINDS,
            guard=_guard(entry.when),
            tell=tell,
        )

    def _class_of(self, entry: ChainEntry) -> type[Middleware]:
        if entry.kind == PLUGIN:
            return load_file(entry.plugin, self._folder)
        if entry.kind in KINDS:
            return load_kind(entry.kind)
        found = load_installed(entry.kind)
        if found is None:
            message = f'there is no middleware "{entry.kind}"'
            raise OptionError(message)
        return found

    def _complain(self, entry: ChainEntry, message: str, option: str = "") -> None:
        place = entry.places.get(option.partition(".")[0], entry.place)
        path = ".".join(filter(None, (entry.path, option)))
        self.mistakes.append(Mistake(place.file, place.line, place.column, path, message))

    def warnings(self) -> Iterator[str]:
        """Yield one line for each thing that is allowed and likely not meant, with its tenant or agent."""
        for name in sorted(self.findings):
            for finding in self.findings[name]:
                if finding.rule.result == WARN:
                    yield f"tenant {name}: {finding}"

    def finish(self) -> None:
        """Raise ConfigError when anything was wrong."""
        if self.mistakes:
            raise ConfigError(self.mistakes)


def join_layers(layers: Iterable[Layer], conditions: Mapping[str, When | None]) -> None:
    """Let layers that stand side by side and see the same calls do their work in one step, where they can."""
    head: Layer | None = None
    for layer in layers:
        same = head is not None and conditions[head.id] == conditions[layer.id]
        if head is None or not same or not head.middleware.join(layer.middleware):
            head = layer


def _below(mistake: Mistake, entry: ChainEntry) -> Mistake:
    path = ".".join(filter(None, (entry.path, mistake.path)))
    return Mistake(mistake.file, mistake.line, mistake.column, path, mistake.message)


def _guard(when: When | None) -> Any:  # noqa: ANN401  a predicate, or None
    """Return what decides at request time whether a layer sees a call."""
    if when is None:
        return None
    return partial(_sees, when.models, when.paths)


def _sees(models: tuple[str, ...] | None, paths: tuple[str, ...] | None, call: Call) -> bool:
    run = call.run
    if models is not None and not any(
        fits(each, run.asked) or fits(each, call.model.name) for each in models
    ):
        return False
    return paths is None or any(fits(each, run.path) for each in paths)


class _NowhereKept:
    """Stands where a store of answers will be: what layers may know of one before they ask it anything."""

    answers_at_once = True
    has_vectors = False


def check_chains(tree: Tree) -> ChainBuilder:
    """Build every chain of a tree for its mistakes alone; calls nothing. Raises ConfigError."""
    builder = _built(tree, tree.models)
    for name in tree.tenants:
        builder.findings[name] += unpriced(tree, name)
    builder.finish()
    return builder


def more_mistakes(error: ConfigError) -> ConfigError:
    """Return an error of a configuration with the mistakes of its chains too, as far as these can be read."""
    sound = error.rest
    if not isinstance(sound, Sound):
        return error
    builder = _built(sound.tree, sound.models, is_whole=sound.is_whole)
    told = {(each.file, each.line, each.column) for each in error.mistakes if each.line}
    paths = {each.path for each in error.mistakes}
    more = [
        each
        for each in builder.mistakes
        if (each.file, each.line, each.column) not in told and each.path not in paths
    ]
    return ConfigError((*error.mistakes, *more))


def _built(tree: Tree, names: Iterable[str], *, is_whole: bool = True) -> ChainBuilder:
    registry = Registry.create(None)
    try:
        kept_nowhere = cast("Any", _NowhereKept)
        ports = Ports(Metrics(registry, VERSION), *(cast("Any", None),) * 3, cache=kept_nowhere)
        models = {name: Model(name, (), "weighted", None, None, None) for name in names}
        builder = Chains(nowhere, ports).builder(tree, models)
        builder.is_apart = builder.is_apart and is_whole  # else nobody knows where state is kept
        for name, tenant in tree.tenants.items():
            try:
                entries = tree.chain_of(name)
            except (KeyError, RecursionError):
                continue  # a stack that is not there or holds itself: that was said before
            builder.uses(name, builder.build(name, entries), tenant.use, models)
        return builder
    finally:
        registry.close()
