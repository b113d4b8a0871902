//! Random games, set-ups and histories, drawn so that superko matters.

use crate::rng::Rng;
use superko_rules::{Board, Color, Game, Geometry, Move, PureEyes, Setup, bits};

/// A random legal move: captures often, passes seldom, and hardly ever the pass that ends the game.
pub(super) fn draw_move(rng: &mut Rng, game: &Game) -> Option<Move> {
    let position = game.position();
    let stones = position.board.stones(position.to_move.opponent()).count_ones();
    let mut weighted: Vec<(Move, usize)> = Vec::new();
    for mv in game.legal_moves() {
        let weight = match mv {
            Move::Pass if position.passes == 1 => usize::from(rng.one_in(8)),
            Move::Pass => 3,
            Move::Stone(_) => {
                let after = game.check(mv).expect("the move is legal").board;
                if after.stones(position.to_move.opponent()).count_ones() < stones { 30 } else { 8 }
            }
        };
        weighted.push((mv, weight));
    }
    let total: usize = weighted.iter().map(|&(_, weight)| weight).sum();
    if total == 0 {
        return None;
    }
    let mut at = rng.below(total);
    weighted.into_iter().find_map(|(mv, weight)| {
        if at < weight {
            return Some(mv);
        }
        at -= weight;
        None
    })
}

/// Plays up to `moves` random moves; stops before or at the end of the game.
pub(super) fn play_on(rng: &mut Rng, game: &mut Game, moves: usize) {
    for _ in 0..moves {
        let Some(mv) = draw_move(rng, game) else { return };
        game.play(mv).expect("the move is legal");
    }
}

/// A random board on which every chain has a liberty.
pub(super) fn draw_board(rng: &mut Rng, geometry: &Geometry) -> Board {
    let empty_share = 1 + rng.below(4);
    let black_share = 1 + rng.below(3);
    let white_share = 1 + rng.below(3);
    let mut board = Board::EMPTY;
    for point in 0..geometry.points() {
        let draw = rng.below(empty_share + black_share + white_share);
        if draw < black_share {
            board.black |= 1 << point;
        } else if draw < black_share + white_share {
            board.white |= 1 << point;
        }
    }
    while let Some(chain) = board.breathless_chain(geometry) {
        board.black &= !chain;
        board.white &= !chain;
    }
    board
}

/// A game that starts where region games do: one player has pure-eye life, and some region is open beside it. Its history holds boards that
/// play from here would create, often those that the claim's own strategy needs. `None` if the draws find no such board.
pub(super) fn draw_walled_game(rng: &mut Rng, geometry: &'static Geometry) -> Option<Game> {
    let open = |stones: u64| {
        let eyes = PureEyes::analyze(geometry, stones);
        eyes.alive != 0 && eyes.alive | eyes.territory != geometry.full()
    };
    let board = std::iter::repeat_with(|| draw_board(rng, geometry)).take(400).find(|board| open(board.black) || open(board.white))?;
    let to_move = if rng.one_in(2) { Color::Black } else { Color::White };
    let plain = Setup { board, to_move, passes: u8::from(rng.one_in(6)), earlier: Vec::new() };
    let game = Game::from_setup(geometry, plain.clone()).expect("the board is legal");
    if rng.one_in(2) {
        return Some(game);
    }
    let (lines, depth) = (1 + rng.below(8), 1 + rng.below(4));
    let mut earlier = draw_future(rng, &game, None, lines, depth);
    earlier.retain(|_| rng.one_in(2));
    Some(Game::from_setup(geometry, Setup { earlier, ..plain }).expect("boards of play are legal"))
}

/// Boards that lines of play from `game` create, those by a move of `creator` only if one is given. As earlier boards of another
/// game from the same position, these are the ones that take moves away.
pub(super) fn draw_future(rng: &mut Rng, game: &Game, creator: Option<Color>, lines: usize, depth: usize) -> Vec<Board> {
    let mut boards = Vec::new();
    for _ in 0..lines {
        let mut line = game.clone();
        for _ in 0..depth {
            let mover = line.position().to_move;
            let Some(mv) = draw_move(rng, &line) else { break };
            line.play(mv).expect("the move is legal");
            if mv != Move::Pass && creator.is_none_or(|color| color == mover) {
                boards.push(line.position().board);
            }
        }
    }
    boards.sort_unstable();
    boards.dedup();
    boards
}

/// A board with some stones of `board` missing and some others added: near in play, so that superko reaches it.
pub(super) fn draw_near(rng: &mut Rng, geometry: &Geometry, board: Board) -> Board {
    let mut near = board;
    for point in bits(geometry.full()) {
        if rng.one_in(4) {
            near.black &= !(1 << point);
            near.white &= !(1 << point);
            match rng.below(3) {
                0 => near.black |= 1 << point,
                1 => near.white |= 1 << point,
                _ => {}
            }
        }
    }
    while let Some(chain) = near.breathless_chain(geometry) {
        near.black &= !chain;
        near.white &= !chain;
    }
    near
}

/// A random game: from the empty board, or from a random diagram whose earlier boards lie in the way of what follows.
pub(super) fn draw_game(rng: &mut Rng, geometry: &'static Geometry) -> Game {
    let mut game = Game::new(geometry);
    if rng.one_in(3) {
        let to_move = if rng.one_in(2) { Color::Black } else { Color::White };
        let plain = Setup { board: draw_board(rng, geometry), to_move, passes: u8::from(rng.one_in(8)), earlier: Vec::new() };
        game = Game::from_setup(geometry, plain.clone()).expect("the board is legal");
        if !rng.one_in(3) {
            let (lines, depth) = (1 + rng.below(4), 1 + rng.below(6));
            let mut earlier = draw_future(rng, &game, None, lines, depth);
            earlier.retain(|_| !rng.one_in(3));
            for _ in 0..rng.below(4) {
                earlier.push(draw_near(rng, geometry, plain.board));
            }
            game = Game::from_setup(geometry, Setup { earlier, ..plain }).expect("the boards are legal");
        }
    }
    let moves = rng.below(3 * geometry.points() + 4);
    play_on(rng, &mut game, moves);
    if rng.one_in(3) && !game.is_over() {
        game = with_bans_ahead(rng, &game);
        let moves = rng.below(4);
        play_on(rng, &mut game, moves);
    }
    game
}

/// The position reached, as a diagram whose earlier boards are those of the game and some that play from here would create. On larger
/// boards random games alone hardly ever meet a ban where the oracle can still see the end.
fn with_bans_ahead(rng: &mut Rng, game: &Game) -> Game {
    let (lines, depth) = (1 + rng.below(8), 1 + rng.below(4));
    let mut earlier = draw_future(rng, game, None, lines, depth);
    earlier.retain(|_| rng.one_in(2));
    earlier.extend(game.boards());
    let position = game.position();
    let setup = Setup { board: position.board, to_move: position.to_move, passes: position.passes, earlier };
    Game::from_setup(game.geometry(), setup).expect("boards of play are legal")
}

/// The same superko game with its boards carried through symmetry `sym` and, if `swap`, the colours exchanged.
pub(super) fn image(game: &Game, sym: u8, swap: bool) -> Game {
    let geometry = game.geometry();
    let map = |board: Board| {
        let board = geometry.map_board(sym, board);
        if swap { Board { black: board.white, white: board.black } } else { board }
    };
    let position = game.position();
    let setup = Setup {
        board: map(position.board),
        to_move: if swap { position.to_move.opponent() } else { position.to_move },
        passes: position.passes,
        earlier: game.boards().iter().map(|&board| map(board)).collect(),
    };
    Game::from_setup(geometry, setup).expect("an image of a legal game is legal")
}
