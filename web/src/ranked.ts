/** What enters and leaves a list of the best. */
import type { MessageFeature } from './api.ts';

export interface Entry {
  feature: MessageFeature;
  score: number;
  isNew: boolean;
}

/** Best first; of equal scores the newer first, as it came. */
export function entered(list: Entry[], feature: MessageFeature, score: number): Entry[] {
  const rest = list
    .filter((entry) => entry.feature.id !== feature.id)
    .map((entry) => ({ ...entry, isNew: false }));
  const place = rest.findIndex((entry) => entry.score <= score);
  return rest.toSpliced(place < 0 ? rest.length : place, 0, { feature, score, isNew: true });
}

export function left(list: Entry[], feature: MessageFeature): Entry[] {
  return list.filter((entry) => entry.feature.id !== feature.id);
}
