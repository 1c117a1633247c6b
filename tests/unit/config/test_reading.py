from pathlib import Path

import pytest

from gateway.config.reading import MAX_FILE_BYTES, MAX_VALUES, parse, read
from gateway.config.scalar import scalar


def words(text: str) -> list[str]:
    return [str(each) for each in parse(text, "f.yaml").mistakes]


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "Yes", "NO", "y", "True", "FALSE"])
def test_only_true_and_false_are_booleans(word: str) -> None:
    assert scalar(word) == word
    assert scalar("true") is True
    assert scalar("false") is False


@pytest.mark.parametrize(
    "word",
    [
        "007",
        "1_000",
        "12:30",
        "0x1f",
        "0o17",
        "1e999",
        ".inf",
        ".nan",
        "2027-01-01",
        "1.2.3",
        "+",
        ".",
    ],
)
def test_what_programs_read_differently_is_text(word: str) -> None:
    assert scalar(word) == word


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("0", 0),
        ("-4", -4),
        ("4000", 4000),
        ("0.15", 0.15),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("~", None),
    ],
)
def test_reads_plain_numbers(word: str, value: float | None) -> None:
    assert scalar(word) == value


def test_a_number_too_long_for_an_integer_is_text() -> None:
    assert scalar("9" * 5000) == "9" * 5000


def test_quoted_words_are_text() -> None:
    root = parse("a: 'true'\nb: \"1\"\nc: |\n  12\n", "f.yaml").root

    assert root is not None
    assert isinstance(root.value, dict)
    assert [node.value for node in root.value.values()] == ["true", "1", "12\n"]


@pytest.mark.bug("K41")
def test_a_key_that_stands_twice_is_named_with_both_places() -> None:
    assert words("a: 1\nb:\n  c: 1\n  c: 2\n") == [
        'f.yaml:4:3: the key "c" is already defined at f.yaml:3:3'
    ]


def test_a_duplicate_hides_no_other_mistake_of_the_file() -> None:
    assert words("a: 1\na: 2\nb: !!str 3\n<<: {c: 1}\n") == [
        'f.yaml:2:1: the key "a" is already defined at f.yaml:1:1',
        "f.yaml:3:4: has a tag: only plain values are read",
        "f.yaml:4:1: merge keys (<<) are not read",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n--- \nb: 2\n", "f.yaml:2:1: a second document: one file is one document"),
        ("a: *b\n", "f.yaml:1:4: the alias *b is not defined"),
        ("a: &a [*a]\n", "f.yaml:1:8: the alias *a stands inside its own value"),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            "f.yaml:1:4: has a tag: only plain values are read",
        ),
        ("? [a]\n: 1\n", "f.yaml:1:3: a key must be a name"),
        ("[a, b]\n", "f.yaml:1:1: must be a block of keys"),
        ("word\n", "f.yaml:1:1: must be a block of keys"),
        ("", "f.yaml: is empty"),
        ("# nothing\n", "f.yaml: is empty"),
        ("{}\n", "f.yaml: is empty"),
        ("---\n", "f.yaml: is empty"),
        ("a:\n\tb: 1\n", "f.yaml:2:1: is not valid YAML: a tab indents this line, use spaces"),
        ("a: \x00\n", "f.yaml:1:4: holds a character that YAML does not allow"),
        ("a: 1\nb: \x1b[0m\n", "f.yaml:2:4: holds a character that YAML does not allow"),
    ],
)
def test_refuses_with_the_place(text: str, message: str) -> None:
    assert words(text)[-1] == message


@pytest.mark.parametrize(
    "text", ["a: [1\n", "a: {b: 1\n", "a: 'x\n", "a: b: c\n", "%YAML 9.9\n---\n", "@a: 1\n"]
)
def test_says_where_text_stops_being_yaml(text: str) -> None:
    [mistake] = words(text)

    assert mistake.startswith("f.yaml:")
    assert ": is not valid YAML" in mistake


def test_anchors_work() -> None:
    document = parse("a: &x {b: 1}\nc: *x\n", "f.yaml")

    assert document.mistakes == ()
    assert document.root is not None
    assert isinstance(document.root.value, dict)
    assert document.root.value["a"].value == document.root.value["c"].value


def test_aliases_cannot_become_a_billion_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    [mistake] = words("\n".join(lines))

    assert mistake.endswith(f"is larger than {MAX_VALUES} values, aliases included")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_and_crashes_nothing(opening: str) -> None:
    [mistake] = words("a: " + opening * 200_000 if opening != "- " else "- " * 200_000)

    assert "nested deeper" in mistake or "nesting depth" in mistake


def test_reads_files_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfserver: {port: 1}\n")

    assert read(file).mistakes == ()


@pytest.mark.parametrize(
    "data", [b"\xff\xfea\x00:\x00", b"a: 1\nb: \xff\xfe\n", bytes(range(256)) * 40]
)
def test_refuses_bytes_that_are_no_text(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(data)

    [mistake] = read(file).mistakes

    assert mistake.message in {"is not UTF-8 text", "holds a character that YAML does not allow"}


def test_names_the_line_of_the_first_bad_byte(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")

    assert str(read(file).mistakes[0]) == f"{file}:2:4: is not UTF-8 text"


def test_refuses_a_file_of_five_megabytes(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"a: 1\n" * 1_000_000)

    assert read(file).mistakes[0].message == f"is larger than {MAX_FILE_BYTES} bytes"


def test_refuses_a_device_and_a_folder(tmp_path: Path) -> None:
    assert read(Path("/dev/zero")).mistakes[0].message == f"is larger than {MAX_FILE_BYTES} bytes"
    assert read(tmp_path).mistakes[0].message == "cannot be read: Is a directory"


def test_refuses_more_values_than_a_configuration_has() -> None:
    [mistake] = words("a: [" + "1," * (MAX_VALUES + 10) + "]")

    assert mistake.endswith(f"is larger than {MAX_VALUES} values, aliases included")
