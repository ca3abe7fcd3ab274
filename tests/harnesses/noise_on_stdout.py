"""Right, but prints what libraries print."""

import right


def reply(request):
    print('Loading weights...\n\n[INFO] done \x1b[31m(took 0.1 s)\x1b[0m {"seq": 1}')
    return right.reply(request)


right.main(reply)
