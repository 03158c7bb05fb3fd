// Which word was meant: for messages about words that nobody knows.

/** How many letters must be put in, taken out, changed or swapped with the next to make one word of the other. */
function distance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  let beforeThat: readonly number[] = [];
  for (let row = 1; row <= one.length; ++row) {
    const here = [row];
    for (let column = 1; column <= other.length; ++column) {
      const change = one[row - 1] === other[column - 1] ? 0 : 1;
      const swapped = one[row - 2] === other[column - 1] && one[row - 1] === other[column - 2];
      here.push(
        Math.min(
          here[column - 1]! + 1,
          above[column]! + 1,
          above[column - 1]! + change,
          row > 1 && column > 1 && swapped ? beforeThat[column - 2]! + 1 : Infinity,
        ),
      );
    }
    beforeThat = above;
    above = here;
  }
  return above[other.length]!;
}

/** What people take for the same letters: `AllReduce`, `all-reduce` and `all_reduce`. */
export function plainLetters(word: string): string {
  return word.toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** A third of the letters wrong is another word. */
const alike = 3;

/** `Did you mean adam?` with a space before it; nothing where no word is near. */
export function didYouMean(word: string, words: readonly string[]): string {
  const near = nearest(word, words);
  if (near === undefined) return '';
  const wrong = distance(plainLetters(word), plainLetters(near));
  return wrong * alike <= Math.max(word.length, alike) ? ` Did you mean ${near}?` : '';
}

/** The word of `words` that needs the fewest changes, upper and lower case taken as one; the first of several. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const far = (other: string) => distance(word.toLowerCase(), other.toLowerCase());
  let best: { readonly word: string; readonly far: number } | undefined;
  for (const other of words) {
    const one = { word: other, far: far(other) };
    if (best === undefined || one.far < best.far) best = one;
  }
  return best?.word;
}
