"""A checker of Superko certificates, written from CERTIFICATE.md alone.    Use: python3 check.py FILE    (- for standard input)

Exit code 0: valid, and what is proved is printed; 1: invalid, the first bad lemma is printed; 2: the input cannot be read as a certificate.
Needs the standard library of Python 3.11 only, and the program `zstd` if the certificate is compressed.
A set of points is an int, point p the bit 1 << p. A board of n points is one int too: black stones + (white stones << n).
"""
import os, pathlib, re, shutil, subprocess, sys, typing
KINDS = ("end of the game", "pure eyes", "miai", "a move of the winner", "all replies of the loser")
BLACK, WHITE, COLOURS = 0, 1, ("black", "white")
INVERSE = (0, 1, 2, 3, 4, 6, 5, 7)  # INVERSE[s] is the symmetry that undoes s
FILTER_BITS = 8192  # see Checker.in_B; every number is correct, this one is fast

class Unreadable(Exception): """The input is no certificate: it breaks off, or bytes mean nothing."""
class Invalid(Exception): """The input is a certificate, but something that it says does not check."""

def require(condition, message):
    if not condition:
        raise Invalid(message)

class Go:  # geometry and rules on a board of so many rows and columns
    def __init__(self, rows, cols):
        self.rows, self.cols, self.n = rows, cols, rows * cols
        self.full = (1 << self.n) - 1
        first = sum(1 << r * cols for r in range(rows))
        self.not_first_col, self.not_last_col = self.full & ~first, self.full & ~(first << cols - 1)
        self.symmetries = range(8 if rows == cols else 4)
        self.tables = []  # tables[s][k][v]: where symmetry s takes the bits 8k ... 8k+7 of a board if they have the value v
        for s in self.symmetries:
            bits = [1 << self.moved(p, s) + self.n * colour for colour in (BLACK, WHITE) for p in range(self.n)]
            bytes_of_bits = [bits[k:k + 8] for k in range(0, len(bits), 8)]
            self.tables.append([[sum(bit for j, bit in enumerate(eight) if v >> j & 1) for v in range(256)] for eight in bytes_of_bits])
    def moved(self, p, s):
        """The image of point p under symmetry s: exchange, then rows, then columns."""
        r, c = reversed(divmod(p, self.cols)) if s & 4 else divmod(p, self.cols)
        return (self.rows - 1 - r if s & 1 else r) * self.cols + (self.cols - 1 - c if s & 2 else c)
    def image(self, board, s):
        """The image of a board, or of a set of points (which is a board without white stones)."""
        result = 0
        for table in self.tables[s]:
            result |= table[board & 255]
            board >>= 8
        return result
    def adjacent(self, m):
        """The points with a neighbour in m. (Some may be in m.)"""
        return (m << self.cols | m >> self.cols | (m & self.not_last_col) << 1 | (m & self.not_first_col) >> 1) & self.full
    def flood(self, seed, within):
        """The maximal connected sets in `within` that have a point of `seed`, together."""
        seed &= within
        while (grown := seed | self.adjacent(seed) & within) != seed:
            seed = grown
        return seed
    def components(self, m):
        """The maximal connected sets in m."""
        found = []
        while m:
            found.append(self.flood(m & -m, m))
            m &= ~found[-1]
        return found
    def split(self, board):
        """The black, the white and the empty points of a board."""
        black, white = board & self.full, board >> self.n
        return black, white, self.full & ~black & ~white
    def play(self, board, colour, p):
        """The board after a stone on the empty point p, or None if that is suicide. Superko is not looked at."""
        own, other = self.split(board)[colour] | 1 << p, self.split(board)[1 - colour]
        other = self.flood(self.adjacent(self.full & ~own & ~other), other)  # the chains that have a liberty stay
        if not self.adjacent(self.flood(1 << p, own)) & ~own & ~other:
            return None
        return own | other << self.n if colour == BLACK else other | own << self.n
    def score(self, board):
        """Black's area less White's."""
        black, white, empty = self.split(board)
        at_black, at_white = self.flood(self.adjacent(black), empty), self.flood(self.adjacent(white), empty)
        return (black | at_black & ~at_white).bit_count() - (white | at_white & ~at_black).bit_count()
    def draw(self, board, between="/"):
        """The rows from the top. (# is a point with a black and a white stone, for messages.)"""
        text = "".join(".XO#"[(board >> p & 1) + 2 * (board >> self.n + p & 1)] for p in range(self.n))
        return between.join(text[r * self.cols:(r + 1) * self.cols] for r in reversed(range(self.rows)))

class Lemma(typing.NamedTuple):
    board: int
    turn: tuple  # (side to move, passes)
    refs: tuple  # the references, each (number of the lemma, symmetry)
    made: int    # the board that a stone of the winner creates (kind 3), else None
    bits: int    # a filter for B, see Checker.in_B
    X: frozenset
    T: int

class Checker:
    def __init__(self, data):
        self.data, self.at = data, 0  # the bytes of the file, and how far they have been read
        self.where, self.now = "header", None  # for messages: what is being checked; the board of the lemma
        self.lemmas = []
        self.numbers = {}  # numbers the boards that are `made` in lemmas, with the same number for images of each other
        self.counts = [0] * len(KINDS)
    def unreadable(self, message):
        raise Unreadable(f"{message} (byte {self.at} of the uncompressed file)")
    def line(self, pattern):
        """The groups of `pattern`, which must fit the whole next line."""
        found = re.compile(pattern + rb"\n").match(self.data, self.at)
        if not found:
            self.unreadable(f"the next line of the header is not of the form '{pattern.decode()}'")
        self.at = found.end()
        return [group.decode() for group in found.groups()]
    def byte(self):
        if self.at >= len(self.data):
            self.unreadable("the file breaks off")
        self.at += 1
        return self.data[self.at - 1]
    def varint(self):
        value = shift = 0
        while (byte := self.byte()) >= 128 and shift < 63:
            value |= (byte & 127) << shift
            shift += 7
        value |= byte << shift
        if value >> 64 or byte == 0 and shift:
            self.unreadable("a number has more than 64 bits or more bytes than needed")
        return value
    def mask(self):
        value = sum(self.byte() << 8 * k for k in range((self.go.n + 7) // 8))
        if value >> self.go.n:
            self.unreadable("a set of points has points that are not on the board")
        return value
    def header(self):
        number, line = rb"([1-9][0-9]{0,8})", self.line
        line(rb"superko certificate 1")
        rows, cols = map(int, line(rb"board " + number + rb"x" + number))
        if rows * cols > 62:
            self.unreadable("the board has more than 62 points")
        self.go = Go(rows, cols)
        (self.komi,) = line(rb"komi (-?(?:0|[1-9][0-9]{0,8})\.5)")
        self.twice_komi = int(2 * float(self.komi))  # exact for so few digits
        self.winner = COLOURS.index(line(rb"winner (black|white)")[0])
        self.root_turn = COLOURS.index(line(rb"to move (black|white)")[0]), int(line(rb"passes ([01])")[0])
        self.history = []
        row = rb"[XO.]{%d}" % cols
        for _ in range(int(line(rb"history " + number)[0])):
            lines = reversed(line(rb"(" + row + (rb"/" + row) * (rows - 1) + rb")")[0].split("/"))  # row 0 is the bottom row
            self.history.append(sum(1 << p + self.go.n * (c == "O") for p, c in enumerate("".join(lines)) if c != "."))
        line(rb"")
        require(len(set(self.history)) == len(self.history), "the boards of the history are not all different")
        *stones, empty = self.go.split(self.history[-1])
        require(all(self.go.flood(self.go.adjacent(empty), own) == own for own in stones), "a chain on the root's board has no liberty")
    def wins(self, difference):
        """Does the winner win if Black's points less White's are this?"""
        return 2 * difference > self.twice_komi if self.winner == BLACK else 2 * difference < self.twice_komi
    def check_claim(self, S, A, T):
        """(A, T) is a claim for S, as kind 1 of the document says."""
        adjacent = self.go.adjacent
        pure = [region for region in self.go.components(self.go.full & ~S) if not region & adjacent(S & ~A)]  # at no chain outside A
        require(A and not A & ~S, "A is empty or has points that are no stones of the winner")
        for chain in self.go.components(S):
            if chain & A:
                require(not chain & ~A, "A is not a union of chains")
                require(sum(not region & ~adjacent(chain) for region in pure) >= 2, "a chain of A has fewer than two eyes")
        require(T == sum(region for region in pure if region & T), "T is not a union of regions that are adjacent to no chain outside A")
        require(not T & ~adjacent(A), "a point of T is not adjacent to a point of A")
        share = 2 * (A | T).bit_count() - self.go.n  # A and T are disjoint; the loser has at most the other points
        require(self.wins(share if self.winner == BLACK else -share), "A and T have too few points")
    def reference(self, code, board, turn):
        """The (number of the lemma, symmetry) that the number `code` is as a reference in the next lemma; it must have this position."""
        target, s = len(self.lemmas) - (code >> 3), code & 7
        require(0 <= target < len(self.lemmas), "a reference is not to an earlier lemma")
        require(s in self.go.symmetries, "a reference has a symmetry that the board has not")
        position = self.go.image(self.lemmas[target].board, s), self.lemmas[target].turn
        require(position == (board, turn), "a reference is to another position than it should be")
        return target, s
    def orbit(self, board):
        """The same for all images of a board, different for boards that are not images of each other."""
        return min(self.go.image(board, s) for s in self.go.symmetries)
    def in_B(self, board, lemma):
        """Is the board in B of the lemma? B is all that stones of the winner create in kind 3 lemmas that references lead to.
        All B as sets would be too large, so they are searched. A board is in the image of B under a symmetry if its image under the inverse
        is in B. Each pair (lemma, board) is visited once, and only lemmas whose filter admits the board: a filter has the bit
        (number of b) % FILTER_BITS for each board b of its B; if that bit is missing, the board is not in B. The filter only saves time.
        """
        number = self.numbers.get(self.orbit(board))
        if number is None:  # no lemma so far creates the board or an image of it
            return False
        bit = 1 << number % FILTER_BITS
        todo, seen = [(lemma, board)], {(lemma, board)}
        while todo:
            at, wanted = todo.pop()
            if self.lemmas[at].made == wanted:
                return True
            refs = [(target, s) for target, s in self.lemmas[at].refs if self.lemmas[target].bits & bit]
            steps = {(target, self.go.image(wanted, INVERSE[s])) for target, s in refs} - seen
            seen |= steps
            todo += steps
        return False
    def lemma(self, first):
        """Reads and checks the record that begins with the byte `first`."""
        go, winner, loser = self.go, self.winner, 1 - self.winner
        kind, side, passes = first & 7, first >> 3 & 1, first >> 4
        if kind >= len(KINDS) or passes > 2:
            self.unreadable(f"{self.where} begins with the byte {first}")
        self.now = board = self.mask() | self.mask() << go.n
        self.where += f" ({KINDS[kind]}, {COLOURS[side]} to move, passes {passes})"
        black, white, empty = go.split(board)
        require(not black & white, "a point has a black and a white stone")
        own = (black, white)[winner]
        fits = (passes == 2, passes == 0 or passes == 1 and side == winner, passes == 0 and side == loser, passes < 2 and side == winner,
                passes < 2 and side == loser)
        require(fits[kind], "the side to move or the number of passes does not fit the kind")
        refs, made, X, T = [], None, set(), 0
        if kind == 0:
            require(self.wins(go.score(board)), "the winner has not won by area")
        elif kind == 1:
            A, T = self.mask(), self.mask()
            self.check_claim(own, A, T)
        elif kind == 2:
            liberties = [(chain, go.adjacent(chain) & empty) for chain in go.components(own)]
            ways, last, stop_all = self.byte(), -1, go.full  # stop_all: the points that stop all ways so far
            require(ways >= 2, "fewer than two ways")
            for _ in range(ways):
                q, A, T_q = self.byte(), self.mask(), self.mask()
                require(last < q < go.n and empty >> q & 1, "the points of the ways are not in increasing order, or one is not empty")
                require(A >> q & 1, "q is not in A(q)")
                self.check_claim(own | 1 << q, A, T_q)
                stop_all &= 1 << q | sum({libs for chain, libs in liberties if chain & A and libs.bit_count() == 1})
                last, T = q, T | T_q | 1 << q
            require(not stop_all, "a point stops all ways")
        elif kind == 3:
            p, code = self.byte(), self.varint()
            if p == 255:  # a pass
                refs.append(self.reference(code, board, (loser, passes + 1)))
            else:
                require(p < go.n and empty >> p & 1, "the move is not on an empty point")
                made = go.play(board, winner, p)
                require(made is not None, "the move is suicide")
                refs.append(self.reference(code, made, (loser, 0)))
        else:
            refs.append(self.reference(self.varint(), board, (winner, passes + 1)))  # 0 is no reference, so refused
            for p in range(go.n):
                if empty >> p & 1 and (after := go.play(board, loser, p)) is not None:
                    if code := self.varint():
                        refs.append(self.reference(code, after, (winner, 0)))
                    else:
                        X.add(after)
        # The sets: what the record itself gives, and the images of those of the lemmas referred to.
        bits = 0 if made is None else 1 << self.numbers.setdefault(self.orbit(made), len(self.numbers)) % FILTER_BITS
        for target, s in refs:
            bits |= self.lemmas[target].bits  # the same for all images
            X.update(go.image(x, s) for x in self.lemmas[target].X)
            T |= go.image(self.lemmas[target].T, s)
        X.discard(board)
        self.lemmas.append(Lemma(board, (side, passes), tuple(refs), made, bits, frozenset(X), T))
        self.counts[kind] += 1
        require(len(X) <= 255, "more than 255 boards in X")
        require(not own & T, "a stone of the winner on the lemma's own board is on a point of T")
        require(not self.in_B(board, len(self.lemmas) - 1), "the lemma's own board is in B")
    def check(self):
        self.header()
        while (first := self.byte()) != 7:
            self.where = f"lemma {len(self.lemmas)}"
            self.lemma(first)
        self.where, self.now, go = "end of the file", self.history[-1], self.go
        require(self.varint() == len(self.lemmas) > 0, "the number of lemmas is not as stated, or 0")
        target, s = self.reference(self.varint(), self.history[-1], self.root_turn)
        if self.at != len(self.data):
            self.unreadable("something follows the end")
        require({go.image(x, s) for x in self.lemmas[target].X} <= set(self.history), "a board of X is not in the history")
        for board in self.history:
            require(not go.split(board)[self.winner] & go.image(self.lemmas[target].T, s), f"{go.draw(board)} has a winner's stone on T")
            require(not self.in_B(go.image(board, INVERSE[s]), target), f"{go.draw(board)} of the history is in B")
def load(name):
    data = sys.stdin.buffer.read() if name == "-" else pathlib.Path(name).read_bytes()
    if data[:4] != b"\x28\xb5\x2f\xfd":
        return data
    if not shutil.which("zstd"):
        raise Unreadable("the file is compressed, and there is no program zstd here: decompress it (zstd -d) first")
    run = subprocess.run(["zstd", "-d", "-c", "-q"], input=data, capture_output=True)
    if run.returncode:
        raise Unreadable("zstd cannot decompress the file: " + run.stderr.decode(errors="replace").strip())
    return run.stdout

def main(arguments):
    try:
        if len(arguments) != 1:
            raise Unreadable("use: check.py FILE    (- for standard input)")
        checker = Checker(load(arguments[0]))
        checker.check()
    except Invalid as error:
        print(f"INVALID: {checker.where}: {error}", *[checker.go.draw(checker.now, "\n")] * (checker.now is not None), sep="\n")
        return 1
    except (Unreadable, OSError, ValueError, MemoryError) as error:
        print("UNREADABLE:", error if str(error) else "not enough memory")
        return 2
    go, (side, passes), (*earlier, root) = checker.go, checker.root_turn, map(checker.go.draw, checker.history)
    print(f"VALID: {COLOURS[checker.winner].capitalize()} wins {root} ({go.rows}x{go.cols}, rows from the top; X black, O white)",
          f"at komi {checker.komi} with {COLOURS[side].capitalize()} to move, passes {passes}, under positional superko,",
          "after the boards " + " ".join(earlier) + "." if earlier else "with no earlier boards.")
    print(f"{len(checker.lemmas)} lemmas:", ", ".join(f"{count} {KINDS[kind]}" for kind, count in enumerate(checker.counts)))
    return 0

if __name__ == "__main__":
    try:
        sys.exit((main(sys.argv[1:]), sys.stdout.flush())[0])
    except BrokenPipeError:  # nobody reads to the end: no judgement
        os._exit(2)
