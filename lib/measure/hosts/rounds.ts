// Who exchanges messages with whom, so that all pairs have their turn and nobody has two at once.

/** Of more hosts each meets so many others, spread over all. */
export const mostRounds = 63;

/** Rounds of a circle of so many: with all others, where these are not more than `most`. */
export function roundsOf(count: number, most = mostRounds): number[] {
  const all = count < 2 ? 0 : count + (count % 2) - 1;
  const rounds = Math.min(all, most);
  return Array.from({ length: rounds }, (_, at) => Math.floor((at * all) / rounds));
}

/** Whom `own` of `count` meets in a round; undefined where it has none, as one of an odd number has. */
export function partnerIn(round: number, own: number, count: number): number | undefined {
  // The circle method: the last stays, the others turn. With an odd number the one that stays is nobody.
  const even = count + (count % 2);
  const turning = even - 1;
  const stays = turning;
  if (own === stays) return partnerOfLast(round, turning);
  const partner = (((round - own) % turning) + turning) % turning;
  if (partner !== own) return partner;
  return stays < count ? stays : undefined;
}

/** The one whose double is the round, by the odd number of those that turn. */
function partnerOfLast(round: number, turning: number): number {
  return round % 2 === 0 ? round / 2 : (round + turning) / 2;
}
