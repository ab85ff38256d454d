import type { FunctionComponent } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../api.ts';
import { Failure } from '../parts.tsx';
import { useTexts } from '../texts.ts';

/** A page whose code is loaded when it is opened for the first time, with the texts of the pages. */
export function lazyPage<Props extends object>(
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | null = null;
  return function LazyPage(props) {
    const texts = useTexts();
    const [turn, setTurn] = useState(0);
    const [isFailed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded !== null && texts.hasPages()) return;
      setFailed(false);
      Promise.all([load(), texts.addPages()]).then(
        ([page]) => {
          loaded = page;
          setTurn((last) => last + 1);
        },
        // A new version of the program has other files: the browser loads the application again.
        () => setFailed(true),
      );
    }, [turn, texts]);
    if (loaded !== null && texts.hasPages()) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    if (isFailed) return <Failure error={new ApiError(0, {})} retry={() => window.location.reload()} />;
    return (
      <p class="loading" role="status">
        {texts.t('app.loading')}
      </p>
    );
  };
}
