print('{"status": "PASSED"}')
