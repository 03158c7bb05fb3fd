// Shapes of values with rows.
import { argumentError } from '../errors.js';

/**
 * Elements per row: the product of all but the first number of the shape; 1 without a shape or for a scalar (`[]`).
 *
 * @throws TypeError if the product of the shape is not `count`.
 */
export function rowLengthOf(shape: unknown, count: number): number {
  if (shape === undefined) return 1;
  const isShape =
    Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
  const sizes = isShape ? (shape as readonly number[]) : [];
  const product = sizes.reduce((all, size) => all * size, 1);
  if (!isShape || product !== count) {
    throw argumentError(
      'ERR_INVALID_ARG_VALUE',
      'shape',
      `whole numbers whose product is the ${count} elements of the value`,
      isShape ? { text: `[${sizes.join(', ')}]` } : shape,
    );
  }
  // An empty value has empty rows; 1 keeps the number of rows (0) defined.
  return sizes.slice(1).reduce((all, size) => all * size, 1) || 1;
}
