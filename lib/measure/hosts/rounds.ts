// Schedules exchanges so that all pairs take part and nobody has two at once.

/** With more hosts, each has this many partners, spread over all. */
export const mostRounds = 63;

/** The rounds of this many participants: all pairs, or at most `most`. */
export function roundsOf(count: number, most = mostRounds): number[] {
  const all = count < 2 ? 0 : count + (count % 2) - 1;
  const rounds = Math.min(all, most);
  return Array.from({ length: rounds }, (_, at) => Math.floor((at * all) / rounds));
}

/** The partner of `own` in a round; undefined without one, as with an odd number. */
export function partnerIn(round: number, own: number, count: number): number | undefined {
  // The circle method: the last stays, the others rotate. With an odd number the last is a dummy.
  const even = count + (count % 2);
  const turning = even - 1;
  const stays = turning;
  if (own === stays) return partnerOfLast(round, turning);
  const partner = (((round - own) % turning) + turning) % turning;
  if (partner !== own) return partner;
  return stays < count ? stays : undefined;
}

/** The one whose double is the round, modulo the number of rotating ones. */
function partnerOfLast(round: number, turning: number): number {
  return round % 2 === 0 ? round / 2 : (round + turning) / 2;
}
